// Formats an account as YAML for gateway.yaml, and a change as the lines to apply. This module
// imports nothing of the page, because tests use it too.

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
