import type { ExplainedPolicy, ExplainedRoute } from "../../../admin/commands/policy-commands.ts";
import type { DataPolicy, Privacy } from "../../../model/facts.ts";
import { type CliCommand, createCommandGroup, EXIT_CODES } from "../../support/command.ts";
import { gatewayCommand, PRIVACY_OPTIONS, readPrivacy } from "../../support/gateway-command.ts";
import { paint, print } from "../../format/terminal.ts";

const explain = gatewayCommand<ExplainedPolicy>("policy.explain", {
  omit: ["privacy"],
  options: PRIVACY_OPTIONS,
  toInput: (input, given) => ({ ...input, privacy: readPrivacy(given) }),
  remarks: { live: "From the running gateway:" },
  print: (answer) => print(formatPolicy(answer)),
  exitCode({ blockedBy, routes }, given) {
    const wanted = readPrivacy(given);
    const admitted =
      wanted === "off" ||
      (blockedBy.length === 0 && routes.some(({ satisfies }) => satisfies[wanted]));
    return admitted ? EXIT_CODES.ok : EXIT_CODES.failed;
  },
});

export const command: CliCommand = {
  ...createCommandGroup("policy", "Explains data policies.", { explain }),
  examples: explain.examples,
};

const formatPolicy = ({ model, requestedPrivacy, routes, blockedBy }: ExplainedPolicy): string =>
  [
    `${paint("bold", model)}${requestedPrivacy === "off" ? "" : ` under Service-ZDR: ${requestedPrivacy}`}`,
    ...routes.flatMap((way) => ["", ...formatPath(way, requestedPrivacy)]),
    ...(blockedBy.length > 0
      ? [
          "",
          `${paint("yellow", "closed")} under Service-ZDR: ${blockedBy.join(", ")} sends content to third parties`,
        ]
      : []),
  ].join("\n");

function formatPath(way: ExplainedRoute, wanted: Privacy): string[] {
  const { policy, credentialDeclaration, satisfies } = way;
  const passes = wanted === "off" ? satisfies.required : satisfies[wanted];
  const result =
    wanted === "off"
      ? `required: ${satisfies.required ? "yes" : "no"}, strict: ${satisfies.strict ? "yes" : "no"}`
      : passes
        ? "would pass"
        : "would be rejected";
  const lines = [
    `${paint("bold", way.id)}  credential ${way.credential}, ${way.protocol ?? "native"}  ${paint(passes ? "green" : "yellow", result)}`,
    `  in effect    ${formatRetention(policy)}, trains: ${policy.trains}, basis: ${policy.basis}`,
    ...(policy.reasons.length > 0 ? [`  because      ${policy.reasons.join(", ")}`] : []),
  ];
  for (const { level, data } of way.statements)
    lines.push(`  ${level.padEnd(12)} ${formatDataPolicy(data)}`, ...evidenceLines(data));
  if (way.statements.length === 0) lines.push("  no level has information: unknown");
  if (!way.isTrusted && way.statements.length > 0)
    lines.push(
      "  not trusted: declared by a third party, or for another address. To trust it, " +
        "set trust_policy: true",
    );
  if (credentialDeclaration)
    lines.push(
      `  declared     ${credentialDeclaration.declared ? "zero retention" : "not to be used"}${credentialDeclaration.note === undefined ? "" : `, "${credentialDeclaration.note}"`}${credentialDeclaration.until === undefined ? "" : `, until ${credentialDeclaration.until}`}`,
    );
  const sent = (policy.controls ?? []).filter(
    (c) => c.protocol === undefined || c.protocol === way.protocol,
  );
  for (const { set, add, headers } of sent)
    lines.push(`  sent along   ${JSON.stringify({ ...set, ...add, ...headers })}`);
  if (policy.attest) lines.push(`  attested by  ${policy.attest.header}: ${policy.attest.equals}`);
  return lines;
}

const formatRetention = ({ retention: kept }: Partial<DataPolicy>): string => {
  if (!kept) return "retention as above";
  if (kept.kind === "days") return `kept for ${kept.days} days`;
  return {
    zero: "not retained",
    memory: "kept in memory",
    until_deleted: "kept until deleted",
    unknown: "unknown retention",
  }[kept.kind];
};

const formatDataPolicy = (data: Partial<DataPolicy>): string =>
  [
    formatRetention(data),
    data.trains === undefined ? undefined : `trains: ${data.trains}`,
    data.requires === undefined ? undefined : `zero requires: ${data.requires}`,
    data.zeroWhen === undefined ? undefined : `zero when: ${data.zeroWhen}`,
    data.verifiedAt === undefined ? undefined : `verified ${data.verifiedAt}`,
    data.expires === undefined ? undefined : `until ${data.expires}`,
  ]
    .filter((word) => word !== undefined)
    .join(", ");

const evidenceLines = ({ evidence }: Partial<DataPolicy>): string[] =>
  (evidence ?? []).map((address) => `               ${address}`);
