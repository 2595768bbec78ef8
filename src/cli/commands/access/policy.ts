import type { ExplainedPolicy, ExplainedRoute } from "../../../admin/commands/policy-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import type { DataPolicy, Privacy } from "../../../model/facts.ts";
import type { JsonObject } from "../../../model/values.ts";
import { askRunningGateway, dryRunConfig } from "../../support/gateway-or-file.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { paint, paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

const explain: Subcommand = {
  usage: "policy explain <model> [options]",
  summary: COMMAND_SPECS["policy.explain"].summary,
  description:
    "Explains the data policy of every candidate for a model: each level with its " +
    "evidence, your own declaration, the fields that are sent along, the expiry " +
    "date, and whether Service-ZDR admits the candidate. Uses the running gateway, " +
    "or gateway.yaml if no gateway is running. Exits with 1 if --zdr or --strict is " +
    "set and no candidate qualifies.",
  options: {
    zdr: { description: "Evaluate with the header Service-ZDR: required" },
    strict: { description: "Evaluate with the header Service-ZDR: strict" },
    ...GATEWAY_OPTIONS,
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate policy explain openai/gpt-5 --zdr",
    "tollgate policy explain fast --strict --json",
  ],
  async run(given) {
    const [model] = given.positionals;
    const wanted: Privacy = given.has("strict") ? "strict" : given.has("zdr") ? "required" : "off";
    const explained = await askGatewayOrFile(given, { model: model!, privacy: wanted });
    if (!explained) return EXIT_CODES.failed;
    if (given.json) printJson(explained);
    else print(formatPolicy(explained));
    if (wanted === "off") return EXIT_CODES.ok;
    const open =
      explained.blockedBy.length === 0 &&
      explained.routes.some(({ satisfies }) => satisfies[wanted]);
    return open ? EXIT_CODES.ok : EXIT_CODES.failed;
  },
};

export const command: CliCommand = {
  ...createCommandGroup("policy", "Explains data policies.", { explain }),
  examples: explain.examples,
};

async function askGatewayOrFile(
  given: CliInput,
  input: JsonObject,
): Promise<ExplainedPolicy | undefined> {
  const live = await askRunningGateway(given, "policy.explain", input);
  if (live) {
    printRemark(paintRemark("gray", "From the running gateway:"));
    return live.answer as unknown as ExplainedPolicy;
  }
  await using rehearsal = await dryRunConfig(given);
  if (!rehearsal) return undefined;
  return (await rehearsal.commands["policy.explain"](input)) as unknown as ExplainedPolicy;
}

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
  const told =
    wanted === "off"
      ? `required: ${satisfies.required ? "yes" : "no"}, strict: ${satisfies.strict ? "yes" : "no"}`
      : passes
        ? "would pass"
        : "would be rejected";
  const lines = [
    `${paint("bold", way.id)}  credential ${way.credential}, ${way.protocol ?? "native"}  ${paint(passes ? "green" : "yellow", told)}`,
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
