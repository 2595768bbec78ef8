import { askControl } from "../gateway/control/asking.ts";
import type { Readings } from "../plugin/readings.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { sayRest } from "./resting.ts";
import { columns, moment, paint, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "readings [options]",
  about:
    "Says what is going on now in all processes of the running gateway: requests, connections to providers, the ledger,\n" +
    "memory, and what was turned away before a frontend saw it. Exits with 1 when none runs.",
  options: PLACE,
  examples: ["tollgate readings", "tollgate readings --json"],
  async run(given) {
    const answer = await askControl(await stateDirOf(given), "readings");
    const readings = answer as unknown as Readings;
    if (given.json) sayJson(readings);
    else say(inWords(readings));
    return EXIT.fine;
  },
};

function inWords(of: Readings): string {
  const { processes, ledger, loopDelayMs: late, memory } = of;
  const rows = [
    ["processes", `${processes.there}, of which ${processes.answered} have answered`],
    ["in flight", [of.inFlight, ...busyFrontends(of)].join(", ")],
    ["ledger", `${ledger.ok ? "takes rows" : paint("red", "takes no rows")}, ${ledger.queue} wait`],
    ["commits", commitsInWords(ledger.commits)],
    ...(ledger.size?.bytes === undefined ? [] : [["ledger's size", megabytes(ledger.size.bytes)]]),
    ["loop delay", `${late.mean} ms, p99 ${late.p99} ms, at most ${late.max} ms`],
    ["memory", `${megabytes(memory.rss)}, heap ${megabytes(memory.heapUsed)}`],
    ...of.pools.map(({ origin, running, free, queued }) => [
      origin,
      `${running} running, ${free} free, ${queued} wait`,
    ]),
    ...of.resting.map(({ provider, credential, model, ...rest }) => [
      "resting",
      `${provider} ${credential}${model ? ` ${model}` : ""}: ${sayRest(rest)}`,
    ]),
    ...of.unreachable.map(({ plugin, since, requests, processes }) => [
      "unreachable",
      `${plugin} since ${moment(since)}, in ${processes} process${processes === 1 ? "" : "es"}; requests are ${requests}`,
    ]),
    ...Object.entries(of.refusals).map(([code, count]) => ["refused", `${count} times ${code}`]),
    ...Object.entries(of.dropped).map(([observer, count]) => [
      observer,
      `${count} records dropped`,
    ]),
  ];
  return columns(rows.map(([name, value]) => [paint("gray", name!), value!]));
}

const busyFrontends = ({ inFlightOf }: Readings): readonly string[] =>
  Object.entries(inFlightOf).flatMap(([name, count]) => (count > 0 ? [`${name} ${count}`] : []));

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const commitsInWords = ({ count, sumMs }: Readings["ledger"]["commits"]): string =>
  count === 0 ? "none yet" : `${count}, ${(sumMs / count).toFixed(1)} ms each`;
