import { askControl } from "../gateway/control/asking.ts";
import type { Fleet, FleetNode } from "../gateway/services/fleet.ts";
import { type CliCommand, CONFIG, EXIT, STATE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { columns, moment, paint, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "fleet [options]",
  about:
    "Lists the gateways that share the store of the running one, itself marked with a star: what each runs, how its clock is\n" +
    "beside the store's, and for how long it has missed a change of keys. Exits with 1 when no gateway runs.",
  options: { ...CONFIG, ...STATE },
  examples: ["tollgate fleet", "tollgate fleet --json"],
  async run(given) {
    const answer = await askControl(await stateDirOf(given), "fleet");
    const fleet = answer as unknown as Fleet;
    if (given.json) sayJson(fleet);
    else say(inWords(fleet));
    return EXIT.fine;
  },
};

const HEAD = [
  "node",
  "state",
  "version",
  "config",
  "workers",
  "clock",
  "keys",
  "open",
  "heard",
  "where",
];

function inWords({ nodes, commands, remarks }: Fleet): string {
  const table = columns([HEAD.map((name) => paint("gray", name)), ...nodes.map(row)]);
  const said = remarks.map((remark) => paint("yellow", remark));
  const open = commands.map(({ about }) => `pid ${about?.pid} on ${about?.host}`);
  if (open.length > 0) said.unshift(`commands that have the store open: ${open.join(", ")}`);
  return [table, ...(said.length > 0 ? ["", ...said] : [])].join("\n");
}

function row({ instance, self, state, about, aheadMs, lagMs, open, heard }: FleetNode): string[] {
  const { version = "?", config = "", generation, url, pid, host, workers } = about ?? {};
  return [
    `${instance.slice(0, 8)}${self ? " *" : ""}`,
    paint(state === "live" ? "green" : "yellow", state),
    version,
    config === "" ? "?" : `${config.slice(0, 8)}, generation ${generation}`,
    known(workers, String),
    known(aheadMs, (ms) => `${ms > 0 ? "+" : ""}${ms} ms`),
    known(lagMs, (ms) => (ms === 0 ? "all" : `${ms} ms late`)),
    known(open, String),
    moment(heard),
    [url, pid === undefined ? undefined : `pid ${pid} on ${host}`].filter(Boolean).join(", "),
  ];
}

const known = (value: number | undefined, said: (value: number) => string): string =>
  value === undefined ? "?" : said(value);
