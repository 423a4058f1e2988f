// Places to meet at, and the words of which codes are made. No word of a code is a place.

export const PLACES = ["bridge", "chapel", "cinema", "harbour", "library", "market", "museum", "station"];

export const WORDS = [
  "anchor", "basil", "candle", "dragon", "ember", "feather", "granite", "hazel", "indigo", "juniper", "kettle", "lantern",
  "magnet", "nutmeg", "orchid", "pepper", "quartz", "ribbon", "saffron", "thistle", "umbrella", "velvet", "walnut", "zephyr",
];
