// Meeting places, and the words of codes. No code word is a place.

export const PLACES = ["bridge", "chapel", "cinema", "harbour", "library", "market", "museum", "station"];

export const WORDS = [
  "anchor", "basil", "candle", "dragon", "ember", "feather", "granite", "hazel", "indigo", "juniper", "kettle", "lantern",
  "magnet", "nutmeg", "orchid", "pepper", "quartz", "ribbon", "saffron", "thistle", "umbrella", "velvet", "walnut", "zephyr",
];
