// What all pages do: times in the viewer's zone, and buttons that copy.

const short = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const long = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Shows a <time> in the zone of whoever looks, with the exact moment for those who point at it. */
export function localise(element) {
    const moment = new Date(element.dateTime.replace(" ", "T"));
    if (Number.isNaN(moment.getTime())) return;
    element.title = element.dateTime;
    element.textContent = (element.className === "moment" ? short : long).format(moment);
}

/** A <time> of a moment of a day that is known, in milliseconds since 1970. */
export function timeElement(ms) {
    const element = document.createElement("time");
    element.className = "moment";
    element.dateTime = new Date(ms).toISOString();
    localise(element);
    return element;
}

for (const element of document.querySelectorAll("time[datetime]")) localise(element);

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
