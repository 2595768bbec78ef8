import type { Explanation } from "../gateway/types.ts";
import { sayDuration } from "../lib/duration.ts";
import { askLive, rehearsed } from "./asking.ts";
import { type CliCommand, type CliInput, EXIT, PLACE } from "./command.ts";
import { sayQuarantine, sayRest } from "./resting.ts";
import { columns, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "explain <model> [options]",
  about:
    "Says what a request for a model would meet: which candidates would be tried and in which order, which are left out, by what and\n" +
    "why, whether the client's bytes travel as they are, and which plugins see the request. Sends nothing. Asks the\n" +
    "running gateway; without one, the file.",
  options: {
    ...PLACE,
    frontend: {
      short: "f",
      value: "name",
      about: "as if it were asked there: messages, responses, …",
    },
    key: {
      value: "id",
      about: "as if this key asked: its id or its name; a running gateway knows it",
    },
    zdr: { about: "as if it were asked with Service-ZDR: required" },
    strict: { about: "as if it were asked with Service-ZDR: strict" },
  },
  words: { least: 1, most: 1 },
  examples: [
    "tollgate explain demo/echo",
    "tollgate explain fast --frontend messages --zdr --json",
  ],
  async run(given) {
    const explained = (await fromGateway(given)) ?? (await fromFile(given));
    if (!explained) return EXIT.failed;
    if (given.json) sayJson(explained);
    else say(inWords(explained));
    return explained.candidates.some(({ excluded }) => !excluded) ? EXIT.fine : EXIT.failed;
  },
};

const inputOf = (given: CliInput) => ({
  model: given.words[0]!,
  frontend: given.text("frontend"),
  key: given.text("key"),
  privacy: given.has("strict") ? "strict" : given.has("zdr") ? "required" : undefined,
});

async function fromGateway(given: CliInput): Promise<Explanation | undefined> {
  const input = inputOf(given);
  const live = await askLive(given, "explain", input);
  if (live) remark(paintRemark("gray", "The running gateway says:"));
  return live?.answer as unknown as Explanation | undefined;
}

async function fromFile(given: CliInput): Promise<Explanation | undefined> {
  await using rehearsal = await rehearsed(given);
  const input = inputOf(given);
  return (await rehearsal?.commands.explain(input)) as Explanation | undefined;
}

function inWords(of: Explanation): string {
  const served = of.candidates.filter(({ excluded }) => !excluded);
  const out = of.candidates.filter(({ excluded }) => excluded);
  const heading = (text: string) => `\n${paint("bold", text)}`;
  const { connectMs, firstByteMs, idleMs, totalMs } = of.timeouts;
  const lines = [`${paint("bold", of.model)} on ${of.frontend}`];
  if (served.length > 0)
    lines.push(
      heading(`would be tried, in this order (${of.pick})`),
      columns(
        served.map((c, i) => [
          `${i + 1}`,
          c.id,
          `credential ${c.credential}`,
          c.protocol ?? "native",
          c.lane === "verbatim"
            ? paint("green", c.lane)
            : `${paint("yellow", c.lane)}${c.closedBy === undefined ? "" : ` (${c.closedBy})`}`,
          ...(c.place === undefined ? [] : [c.place]),
          ...(c.resting ? [paint("yellow", sayRest(c.resting))] : []),
        ]),
        "  ",
      ),
    );
  else lines.push(heading("nothing would be tried"));
  if (out.length > 0)
    lines.push(
      heading("left out"),
      columns(
        out.map(({ id, credential, excluded }) => [
          id,
          `credential ${credential}`,
          `${excluded!.by}: ${excluded!.message} (${excluded!.code})`,
        ]),
        "  ",
      ),
    );
  const hooks = Object.entries(of.hooks).filter(([, plugins]) => plugins.length > 0);
  if (hooks.length > 0)
    lines.push(
      heading("plugins, in order"),
      columns(
        hooks.map(([hook, plugins]) => [hook, plugins.join(" → ")]),
        "  ",
      ),
    );
  if ((of.quarantined ?? []).length > 0)
    lines.push(
      heading("not asked now"),
      ...of.quarantined!.map((one) => `  ${sayQuarantine(one)}`),
    );
  lines.push(
    heading("timeouts"),
    `  connect ${sayDuration(connectMs)}, first byte ${sayDuration(firstByteMs)}, idle ${sayDuration(idleMs)}, total ${sayDuration(totalMs)}`,
  );
  if (of.hedge && of.hedge.length > 0)
    lines.push(
      heading("hedging"),
      ...of.hedge.map(
        ({ class: name, afterMs }) =>
          `  class ${name}: after ${sayDuration(afterMs)} without content the next candidate is called as well`,
      ),
      "  cost: both calls are billed; hedges spend the retry budget of the client, about 6 per 100 requests",
    );
  if ((of.notes ?? []).length > 0)
    lines.push(heading("notes"), ...of.notes!.map((note) => `  ${note}`));
  return lines.join("\n");
}
