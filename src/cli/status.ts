import { datedLine } from "../catalogue/refresh.ts";
import { askControl } from "../gateway/control/asking.ts";
import type { Status } from "../gateway/types.ts";
import { faultOf } from "../model/error.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { reported, sayLeftOut } from "./report.ts";
import { sayQuarantine, sayRest, sayUnreachable } from "./resting.ts";
import { columns, moment, paint, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "status [options]",
  about:
    "Says how the running gateway is: where, since when, which config, what is in flight, how the last reload went.\n" +
    "Exits with 1 when none runs; with --quiet also while none serves yet.",
  options: { ...PLACE, quiet: { about: "print nothing: for health checks" } },
  examples: [
    "tollgate status",
    "tollgate status --quiet",
    "tollgate status --state-dir /var/lib/tollgate --json",
  ],
  async run(given) {
    const stateDir = await stateDirOf(given);
    const ask = () => askControl(stateDir, "status") as unknown as Promise<Status>;
    // One that goes as it is asked is asked again: another one may have taken its place.
    const asked = ask().catch((error: unknown) => {
      if (faultOf(error)?.code !== "gateway_ended") throw error;
      return ask();
    });
    if (given.has("quiet"))
      return asked.then(
        (status) => (isServed(status) ? EXIT.fine : EXIT.failed),
        () => EXIT.failed,
      );
    const status = await asked;
    if (given.json) sayJson({ ...status, lists: status.lists.map(datedLine) });
    else say(inWords(status));
    return EXIT.fine;
  },
};

/** One that takes another's place has that one's ports: clients wait, and are served. */
const isServed = ({ state, before }: Status): boolean =>
  state !== "starting" || before !== undefined;

function inWords(of: Status): string {
  const flying = of.generations.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const older = of.generations.filter(({ generation }) => generation !== of.generation);
  const rows = [
    [
      "gateway",
      `${of.state === "ready" ? paint("green", of.state) : paint("yellow", of.state)}${of.urls.length > 0 ? ` at ${of.urls.join(", ")}` : ""}`,
    ],
    ...(of.trouble
      ? [
          [
            "ledger",
            paint("red", `unavailable since ${moment(of.trouble.since)}: ${of.trouble.why}`),
          ],
        ]
      : []),
    ...(of.admin === undefined ? [] : [["admin", of.admin]]),
    ["version", `${of.version}, pid ${of.pid}, since ${moment(of.startedAt)}`],
    [
      "config",
      `${of.file ?? "the default config"}, generation ${of.generation}, loaded ${moment(of.loadedAt)}`,
    ],
    ["state", of.stateDir],
    [
      "in flight",
      `${flying}${older.length === 0 ? "" : `, ${older.map((g) => `${g.inFlight} in generation ${g.generation}`).join(", ")}`}`,
    ],
    ...(of.before
      ? [
          [
            "before it",
            `pid ${of.before.pid} ends when its ${of.before.inFlight} requests are over`,
          ],
        ]
      : []),
    ...(of.lastUpgrade
      ? [["last upgrade", paint("red", `${of.lastUpgrade.why} ${moment(of.lastUpgrade.at)}`)]]
      : []),
    ["last reload", lastReload(of)],
    ...(of.leftOut.length > 0 ? [["left out", sayLeftOut(of.leftOut)]] : []),
    ...of.lists.map(({ provider, count, lastError, nextAt }) => [
      `models of ${provider}`,
      `${count ?? "not known yet"}${
        lastError ? paint("yellow", `; ${moment(lastError.at)}: ${lastError.message}`) : ""
      }${lastError && nextAt ? `; asked again ${moment(nextAt)}` : ""}`,
    ]),
    ...(of.files.kept + of.files.files > 0 ? [["image files", fileCounts(of.files)]] : []),
    ...(of.workers ?? []).map(({ pid, startedAt, generations }, i) => [
      `worker ${i + 1}`,
      `pid ${pid}, since ${moment(startedAt)}, ${generations.reduce((sum, { inFlight }) => sum + inFlight, 0)} in flight`,
    ]),
    ...(of.instances ?? []).map(({ instance, about, state, heard }) => [
      "instance",
      `${instance.slice(0, 8)}${about ? `, ${about.version}, pid ${about.pid} on ${about.host}` : ""}, ${paint(state === "live" ? "green" : "yellow", state)}, heard of ${moment(heard)}`,
    ]),
    ...of.quarantined.map((one) => ["quarantined", paint("yellow", sayQuarantine(one))]),
    ...of.unreachable.map((one) => ["unreachable", paint("red", sayUnreachable(one))]),
    ...of.speeds.map(({ what, stream, contentMs, reckonedMs, askedAt }) => [
      "speed",
      `${what}: ${stream ? "a stream's" : "a whole answer's"} first content after ${contentMs} ms${
        reckonedMs === contentMs ? "" : `, taken for ${reckonedMs} ms`
      }, asked ${moment(askedAt)}`,
    ]),
    ...of.resting.map(({ what, ...rest }) => ["resting", `${what}: ${sayRest(rest)}`]),
  ];
  const problems =
    of.lastReload?.ok === false ? `\n\n${reported(of.lastReload.problems, paint)}` : "";
  return columns(rows.map(([name, value]) => [paint("gray", name!), value!])) + problems;
}

const fileCounts = ({ files, bytes, served, refused }: Status["files"]): string =>
  `${files} (${(bytes / 1e6).toFixed(1)} MB), ${served} times fetched, ${refused} times refused`;

function lastReload({ lastReload: last }: Status): string {
  if (!last) return "none";
  const how = last.ok
    ? last.unchanged
      ? "nothing had changed"
      : paint("green", `generation ${last.generation}`)
    : paint(
        "red",
        last.refused
          ? `refused: ${last.refused.join(", ")} need a restart`
          : "refused: the config has errors",
      );
  return `${how}, by ${last.why}, ${moment(last.at)}`;
}
