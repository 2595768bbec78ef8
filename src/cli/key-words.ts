// Keys, as the command line shows them.
import type { ShownKey } from "../gateway/control/key-commands.ts";
import { countText } from "./limit.ts";
import { columns, moment, paint, paintRemark, remark, say } from "./terminal.ts";

/** A key of gateway.yaml has the plugin that knows it in place of the moment in which it was made. */
export type ListedKey = Omit<ShownKey, "created" | "version"> & {
  readonly created?: number;
  readonly from?: string;
};

export interface KeyAnswer {
  readonly warnings?: readonly string[];
  readonly secret?: string;
  readonly key?: ShownKey;
  readonly keys?: readonly ListedKey[];
  /** How many were there already. */
  readonly there?: number;
}

export function tell(what: string, of: KeyAnswer): void {
  const { secret, key, keys = [], warnings = [], there = 0 } = of;
  for (const warning of warnings) remark(`${paintRemark("yellow", "warning")}  ${warning}`);
  if (secret !== undefined && key) {
    // Alone on stdout, so that it can be piped to where it belongs.
    say(secret);
    remark(
      paintRemark(
        "gray",
        what === "rotate"
          ? `The new secret of ${key.id}, shown this once.`
          : `The key ${key.id}, shown this once.`,
      ),
    );
    return;
  }
  if (what === "import") remark(`${keys.length} keys taken in, ${there} were there already.`);
  if (keys.length === 0) {
    if (what !== "import") remark("There are no keys. tollgate keys create makes one.");
  } else if (what === "show" || what === "update") say(keys.map(inFull).join("\n\n"));
  else say(listed(keys));
}

const listed = (keys: readonly ListedKey[]): string =>
  columns([
    ["id", "name", "state", "made", "ends", "may use", "left"].map((title) => paint("gray", title)),
    ...keys.map((each) => [
      each.id,
      each.name ?? "",
      stateOf(each),
      each.created === undefined ? (each.from ?? "") : moment(each.created).slice(0, 10),
      ends(each),
      (each.models ?? ["everything"]).join(", "),
      (each.counted ?? []).map(countText).join(", "),
    ]),
  ]);

const stateOf = ({ state }: Pick<ShownKey, "state">) =>
  paint(state === "valid" ? "green" : "red", state);
const ends = ({ revoked, expires }: Pick<ShownKey, "revoked" | "expires">) =>
  revoked !== undefined ? moment(revoked) : expires !== undefined ? moment(expires) : "never";

function inFull(key: ListedKey): string {
  const rows: [string, string | undefined][] = [
    ["id", key.id],
    ["name", key.name],
    ["state", stateOf(key)],
    ["made", key.created === undefined ? key.from : moment(key.created)],
    ["ends", ends(key)],
    ["models", (key.models ?? ["everything"]).join(", ")],
    ["frontends", (key.frontends ?? ["everywhere"]).join(", ")],
    ["privacy", key.privacy],
    ["account", key.account],
    ["limits", key.limits?.join(", ")],
    ...countRows(key.counted),
    [
      "labels",
      Object.entries(key.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
  ];
  return columns(rows.flatMap(([name, value]) => (value ? [[paint("gray", name), value]] : [])));
}

/** A line for each limit: whose it is, and what is left. */
export const countRows = (counted: ShownKey["counted"] = []): [string, string][] =>
  counted.map((each) => ["left", `${countText(each)}  ${paint("gray", each.scope)}`]);
