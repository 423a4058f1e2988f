// The script of all pages: times in the viewer's time zone, and copy buttons.

const short = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const long = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Shows a <time> in the viewer's time zone, with the UTC time as its tooltip. */
export function localize(element) {
    const moment = new Date(element.dateTime.replace(" ", "T"));
    if (Number.isNaN(moment.getTime())) return;
    element.title = element.dateTime;
    element.textContent = (element.className === "moment" ? short : long).format(moment);
}

/** Makes a <time> with the time of day; `ms` is in milliseconds since 1970. */
export function timeElement(ms) {
    const element = document.createElement("time");
    element.className = "moment";
    element.dateTime = new Date(ms).toISOString();
    localize(element);
    return element;
}

for (const element of document.querySelectorAll("time[datetime]")) localize(element);

// A double click sends a form once. Otherwise it would take two places in a queue, which then match each other.
document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

for (const block of document.querySelectorAll("pre.copy")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
}
