import type { ExplainedPolicy, ExplainedWay } from "../gateway/control/policy-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import type { DataPolicy, Privacy } from "../model/facts.ts";
import type { JsonObject } from "../model/values.ts";
import { askLive, rehearsed } from "./asking.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const explain: Part = {
  usage: "policy explain <model> [options]",
  summary: COMMANDS["policy.explain"].summary,
  about:
    "Says what becomes of data on every way to a model: what each level says and on which evidence, what your own " +
    "declaration adds, what is sent along, until when it holds, and whether Service-ZDR would let it pass. With --zdr or " +
    "--strict it fails when no way would do. Asks the running gateway; without one, the file.",
  options: {
    zdr: { about: "as for Service-ZDR: required" },
    strict: { about: "as for Service-ZDR: strict" },
    ...PLACE,
  },
  words: { least: 1, most: 1 },
  examples: [
    "tollgate policy explain openai/gpt-5 --zdr",
    "tollgate policy explain fast --strict --json",
  ],
  async run(given) {
    const [model] = given.words;
    const wanted: Privacy = given.has("strict") ? "strict" : given.has("zdr") ? "required" : "off";
    const explained = await ask(given, { model: model!, privacy: wanted });
    if (!explained) return EXIT.failed;
    if (given.json) sayJson(explained);
    else say(inWords(explained));
    if (wanted === "off") return EXIT.fine;
    const open = explained.closed.length === 0 && explained.ways.some(({ would }) => would[wanted]);
    return open ? EXIT.fine : EXIT.failed;
  },
};

export const command: CliCommand = {
  ...group("policy", "Says what becomes of data.", { explain }),
  examples: explain.examples,
};

async function ask(given: CliInput, input: JsonObject): Promise<ExplainedPolicy | undefined> {
  const live = await askLive(given, "policy.explain", input);
  if (live) {
    remark(paintRemark("gray", "The running gateway says:"));
    return live.answer as unknown as ExplainedPolicy;
  }
  await using rehearsal = await rehearsed(given);
  if (!rehearsal) return undefined;
  return (await rehearsal.commands["policy.explain"](input)) as unknown as ExplainedPolicy;
}

const inWords = ({ model, wanted, ways, closed }: ExplainedPolicy): string =>
  [
    `${paint("bold", model)}${wanted === "off" ? "" : ` under Service-ZDR: ${wanted}`}`,
    ...ways.flatMap((way) => ["", ...wayInWords(way, wanted)]),
    ...(closed.length > 0
      ? [
          "",
          `${paint("yellow", "closed")} under Service-ZDR: ${closed.join(", ")} sends content elsewhere`,
        ]
      : []),
  ].join("\n");

function wayInWords(way: ExplainedWay, wanted: Privacy): string[] {
  const { policy, declared, would } = way;
  const passes = wanted === "off" ? would.required : would[wanted];
  const told =
    wanted === "off"
      ? `required: ${would.required ? "yes" : "no"}, strict: ${would.strict ? "yes" : "no"}`
      : passes
        ? "would do"
        : "would be refused";
  const lines = [
    `${paint("bold", way.id)}  credential ${way.credential}, ${way.protocol ?? "native"}  ${paint(passes ? "green" : "yellow", told)}`,
    `  in effect    ${retention(policy)}, trains: ${policy.trains}, basis: ${policy.basis}`,
    ...(policy.because.length > 0 ? [`  because      ${policy.because.join(", ")}`] : []),
  ];
  for (const { level, data } of way.sayings)
    lines.push(`  ${level.padEnd(12)} ${inShort(data)}`, ...sources(data));
  if (way.sayings.length === 0) lines.push("  no level says anything of it: unknown");
  if (!way.trusted && way.sayings.length > 0)
    lines.push(
      "  not believed: it is a third party's word, or about another address; trust_policy: true says otherwise",
    );
  if (declared)
    lines.push(
      `  your word    ${declared.declared ? "keeps nothing" : "not to be used"}${declared.note === undefined ? "" : `, "${declared.note}"`}${declared.until === undefined ? "" : `, until ${declared.until}`}`,
    );
  const sent = (policy.controls ?? []).filter(
    (c) => c.protocol === undefined || c.protocol === way.protocol,
  );
  for (const { set, add, headers } of sent)
    lines.push(`  sent along   ${JSON.stringify({ ...set, ...add, ...headers })}`);
  if (policy.attest) lines.push(`  attested by  ${policy.attest.header}: ${policy.attest.equals}`);
  return lines;
}

const retention = ({ retention: kept }: Partial<DataPolicy>): string => {
  if (!kept) return "retention as above";
  if (kept.kind === "days") return `kept for ${kept.days} days`;
  return {
    zero: "kept nowhere",
    memory: "kept in memory",
    until_deleted: "kept until deleted",
    unknown: "not known how long it is kept",
  }[kept.kind];
};

const inShort = (data: Partial<DataPolicy>): string =>
  [
    retention(data),
    data.trains === undefined ? undefined : `trains: ${data.trains}`,
    data.requires === undefined ? undefined : `zero requires: ${data.requires}`,
    data.zeroWhen === undefined ? undefined : `zero when: ${data.zeroWhen}`,
    data.verifiedAt === undefined ? undefined : `read ${data.verifiedAt}`,
    data.expires === undefined ? undefined : `until ${data.expires}`,
  ]
    .filter((word) => word !== undefined)
    .join(", ");

const sources = ({ evidence }: Partial<DataPolicy>): string[] =>
  (evidence ?? []).map((address) => `               ${address}`);
