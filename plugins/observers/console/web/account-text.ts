// Parses limits such as usd=300/month. This module imports nothing from the page, because tests
// compare it with the gateway's own parser.
const SPAN = "/(?:minute|hour|day|week|month|total)";
const COUNTED = "(?:requests|tokens|input|output|images|characters|seconds|searches|calls)";
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

// Formats an account as YAML for gateway.yaml, and a change as the lines to apply. This module
// imports nothing from the page, because tests use it too.

/** The properties of an account that gateway.yaml can set. */
export interface AccountConfig {
  readonly id: string;
  readonly name?: string | undefined;
  readonly parent?: string | undefined;
  readonly limits?: readonly string[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly frontends?: readonly string[] | undefined;
  readonly privacy?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly discloseLimits?: string | undefined;
  readonly defaults?: { readonly limits: readonly string[] } | undefined;
}

/** Leaves a word unquoted if YAML reads it only as a string. */
const yamlScalar = (text: string): string =>
  /^[A-Za-z][\w-]*(?:[./][\w-]+)*$/.test(text) &&
  !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);

const yamlList = (of: readonly string[]): string => `[${of.map(yamlScalar).join(", ")}]`;

const yamlLimits = (of: readonly string[], depth: string): string[] => [
  `${depth}limits:`,
  ...of.map((each) => `${depth}  - ${each}`),
];

/** Returns the account's entry under `accounts:`. */
export function accountYaml(of: AccountConfig): string[] {
  const { name, parent, models, frontends, privacy, labels = {}, discloseLimits, defaults } = of;
  const own = of.limits ?? [];
  const labelled = Object.entries(labels);
  const inside = [
    ...(name ? [`    name: ${yamlScalar(name)}`] : []),
    ...(parent ? [`    parent: ${yamlScalar(parent)}`] : []),
    ...(own.length > 0 ? yamlLimits(own, "    ") : []),
    ...(models ? [`    models: ${yamlList(models)}`] : []),
    ...(frontends ? [`    frontends: ${yamlList(frontends)}`] : []),
    ...(privacy ? [`    privacy: ${yamlScalar(privacy)}`] : []),
    ...(labelled.length > 0
      ? [
          "    labels:",
          ...labelled.map(([label, value]) => `      ${yamlScalar(label)}: ${yamlScalar(value)}`),
        ]
      : []),
    ...(discloseLimits ? [`    disclose_limits: ${yamlScalar(discloseLimits)}`] : []),
    ...(defaults && defaults.limits.length > 0
      ? ["    key_defaults:", ...yamlLimits(defaults.limits, "      ")]
      : []),
  ];
  return inside.length > 0
    ? [`  ${yamlScalar(of.id)}:`, ...inside]
    : [`  ${yamlScalar(of.id)}: {}`];
}

/** Returns the difference between two versions. Each line starts with "+", "-", or a space. */
export function accountDiff(before: AccountConfig, after: AccountConfig): string[] {
  const [old, now] = [accountYaml(before), accountYaml(after)];
  const lines = ["  accounts:"];
  let at = 0;
  for (const line of old) {
    const there = now.indexOf(line, at);
    if (there < 0) lines.push(`- ${line}`);
    else {
      lines.push(...now.slice(at, there).map((each) => `+ ${each}`), `  ${line}`);
      at = there + 1;
    }
  }
  return [...lines, ...now.slice(at).map((each) => `+ ${each}`)];
}
