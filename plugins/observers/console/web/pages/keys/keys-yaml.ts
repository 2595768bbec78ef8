// An account as gateway.yaml writes it, and a change of one as the lines to apply. Nothing of the page is imported: tests read it too.

/** What gateway.yaml can say of an account. */
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

/** A word that YAML reads as text and as nothing else stays bare. */
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

/** Its entry under `accounts:`. */
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

/** From one to the other: each line with "+", "-" or a space before it. */
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
