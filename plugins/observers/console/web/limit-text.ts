// Parses limits such as usd=300/month. This module imports nothing of the page, because tests
// compare it with the gateway's own parser.
const SPAN = "/(?:minute|hour|day|week|month|total)";
const COUNTED = "(?:requests|tokens|input|output|images|characters|seconds|searches)";
const LIMIT_PATTERN = new RegExp(
  `^(?:usd=\\d{1,9}(?:\\.\\d{1,9})?${SPAN}|${COUNTED}=\\d{1,15}${SPAN}|concurrent=\\d{1,15})$`,
);

export const isLimit = (text: string): boolean => LIMIT_PATTERN.test(text);

/** Splits the text of a form field into limits. */
export const splitLimits = (text: string): string[] => text.split(/[,\s]+/).filter(Boolean);

/** Returns why a field's limits are invalid, or undefined if they are valid. */
export const limitError = (text: string): string | undefined => {
  const wrong = splitLimits(text).find((each) => !isLimit(each));
  return (
    wrong &&
    `Invalid limit "${wrong}". Enter a limit such as usd=25/month, requests=60/minute, or concurrent=5.`
  );
};

const UNIT_TITLES: Readonly<Record<string, string>> = {
  usd: "Spend",
  concurrent: "Concurrent requests",
  input: "Input tokens",
  output: "Output tokens",
  seconds: "Seconds of audio",
};

/** Returns the title of a limit: "Spend per month". */
export function limitTitle(text: string): string {
  const [unit = "", , per] = text.split(/[=/]/);
  const name = UNIT_TITLES[unit] ?? unit.charAt(0).toUpperCase() + unit.slice(1);
  return per === undefined ? name : per === "total" ? `${name}, lifetime` : `${name} per ${per}`;
}
