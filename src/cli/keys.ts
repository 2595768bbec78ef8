import { wallClock } from "../lib/wall-clock.ts";
import type { ShownKey } from "../gateway/control/key-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { parseDuration } from "../lib/duration.ts";
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import {
  type CliCommand,
  CONFIG,
  EXIT,
  type CliInput,
  ofParts,
  type Options,
  type Part,
  STATE,
} from "./command.ts";
import { HASH } from "./key-hash.ts";
import { parseLimit, sayLimit } from "./limit.ts";
import { ask, mounted } from "./plugin.ts";
import { storeDoor } from "./store.ts";
import { columns, moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const GRANTS: Options = {
  name: { value: "words", about: "what people call it" },
  models: {
    value: "pattern",
    about: 'what it may use, as in "openai/*"; everything by default',
    many: true,
  },
  frontends: { value: "name", about: "where it may ask; everywhere by default", many: true },
  privacy: { value: "level", about: "the least privacy of its requests: off, required or strict" },
  account: { value: "name", about: "the account that it draws on, as gateway.yaml names it" },
  expires: { value: "when", about: "after 30d, or on 2027-01-31" },
  limit: {
    value: "limit",
    about: "requests=60/minute, tokens=1000000/day, usd=5/month, concurrent=4",
    many: true,
  },
  label: { value: "name=value", about: "kept with every ledger row of it", many: true },
};
const BASIC: Options = { ...CONFIG, ...STATE };
const WHERE = "In the running gateway, or in its store while none runs.";

/** One that works on the store, by its name there. */
const onStore = (
  does: string,
  of: Omit<Part, "run" | "words"> & { readonly takes?: "id" },
  input: (given: CliInput) => JsonObject = () => ({}),
): Part => ({
  ...of,
  words: { least: of.takes ? 1 : 0, most: of.takes ? 1 : 0 },
  async run(given) {
    const asked = { id: given.words[0], ...input(given) };
    await using door = await storeDoor(given);
    const answer = (await door.ask(`keys.${does}`, asked)) as unknown as Answer;
    if (given.json) sayJson(answer);
    else tell(does, answer);
    return EXIT.fine;
  },
});

const parts: Readonly<Record<string, Part>> = {
  create: onStore(
    "create",
    {
      usage: "keys create [options]",
      summary: COMMANDS["keys.create"].summary,
      about: `Makes a key of a client and prints it: once, for it is kept nowhere. ${WHERE}`,
      options: { ...GRANTS, ...BASIC },
      examples: [
        "tollgate keys create --name laptop --models 'demo/*' --limit requests=60/minute",
        "tollgate keys create --name ci --expires 30d --label team=web --account research",
      ],
    },
    grantsOf,
  ),
  list: {
    usage: "keys list [options]",
    summary: COMMANDS["keys.list"].summary,
    about: `Lists the keys that there are, with what each may use. ${WHERE}`,
    options: BASIC,
    examples: ["tollgate keys list", "tollgate keys list --json"],
    async run(given) {
      const keys = [...(await inStore(given)), ...(await inFile(given))];
      if (given.json) sayJson({ keys });
      else tell("list", { keys });
      return EXIT.fine;
    },
  },
  show: onStore("show", {
    usage: "keys show <id> [options]",
    summary: COMMANDS["keys.show"].summary,
    about: `Shows a key by its id, or by its name where only one has it. ${WHERE}`,
    options: BASIC,
    takes: "id",
    examples: ["tollgate keys show laptop"],
  }),
  revoke: onStore("revoke", {
    usage: "keys revoke <id> [options]",
    summary: COMMANDS["keys.revoke"].summary,
    about: `Ends a key at once; what it has open is finished. ${WHERE}`,
    options: BASIC,
    takes: "id",
    examples: ["tollgate keys revoke laptop"],
  }),
  move: onStore(
    "move",
    {
      usage: "keys move <id> [options]",
      summary: COMMANDS["keys.move"].summary,
      about: `What it uses from now on counts there; its rows stay where they are. ${WHERE}`,
      options: {
        account: { value: "name", about: "the account, as gateway.yaml names it; none by default" },
        ...BASIC,
      },
      takes: "id",
      examples: ["tollgate keys move laptop --account research"],
    },
    (given) => ({ account: given.text("account") }),
  ),
  rotate: onStore(
    "rotate",
    {
      usage: "keys rotate <id> [options]",
      summary: COMMANDS["keys.rotate"].summary,
      about: `Prints a new secret of the same key; the old one still works for a while. ${WHERE}`,
      options: {
        overlap: { value: "time", about: "how long the old one still works; 24h by default" },
        ...BASIC,
      },
      takes: "id",
      examples: ["tollgate keys rotate laptop --overlap 1h"],
    },
    (given) => ({ overlapMs: overlapOf(given) }),
  ),
  hash: HASH,
};

export const command: CliCommand = {
  usage: "keys <command> [options]",
  about: "Makes and ends the keys of clients.",
  options: {},
  parts,
  examples: Object.values(parts).map(({ examples }) => examples[0]!),
  run: ofParts,
};

/** A key of gateway.yaml has the plugin that knows it in place of the moment in which it was made. */
type ListedKey = Omit<ShownKey, "created"> & { readonly created?: number; readonly from?: string };

async function inStore(given: CliInput): Promise<readonly ListedKey[]> {
  await using door = await storeDoor(given);
  return ((await door.ask("keys.list", {})) as unknown as { keys: ShownKey[] }).keys;
}

/** A plugin that has a command `keys` lists with it the keys that it lets in. */
async function inFile(given: CliInput): Promise<readonly ListedKey[]> {
  const found: ListedKey[] = [];
  for (const { id, commands } of await mounted(given))
    if (commands.some(({ name }) => name === "keys"))
      for (const key of (await ask(given, `${id}/keys`, {})) as unknown as readonly ListedKey[])
        found.push({
          ...key,
          from: id,
          state: (key.expires ?? Infinity) <= wallClock() ? "expired" : "valid",
        });
  return found;
}

interface Answer {
  readonly warnings?: readonly string[];
  readonly secret?: string;
  readonly key?: ShownKey;
  readonly keys?: readonly ListedKey[];
}

function grantsOf(given: CliInput): JsonObject {
  const list = (name: string) => {
    const found = given
      .texts(name)
      .flatMap((text) => text.split(","))
      .filter(Boolean);
    return found.length > 0 ? found : undefined;
  };
  return {
    name: given.text("name"),
    models: list("models"),
    frontends: list("frontends"),
    privacy: given.text("privacy"),
    account: given.text("account"),
    expires: expiry(given.text("expires")),
    limits: given.texts("limit").map(parseLimit),
    labels: Object.fromEntries(given.texts("label").map(parseLabel)),
  };
}

function overlapOf(given: CliInput): number {
  const text = given.text("overlap") ?? "24h";
  return (
    parseDuration(text) ??
    fail("invalid", `--overlap is a time, as in 24h, not "${text}".`, { code: "usage" })
  );
}

function expiry(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() + span;
  if (Number.isNaN(at) || at <= wallClock())
    fail("invalid", `--expires is a time to come, as in 30d or 2027-01-31, not "${text}".`, {
      code: "usage",
    });
  return at;
}

function parseLabel(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  return name === undefined
    ? fail("invalid", `--label is name=value, not "${text}".`, { code: "usage" })
    : [name, value!];
}

function tell(what: string, { secret, key, keys = [], warnings = [] }: Answer): void {
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
  } else if (keys.length === 0) remark("There are no keys. tollgate keys create makes one.");
  else if (what === "show") say(keys.map(inFull).join("\n\n"));
  else
    say(
      columns([
        ["id", "name", "state", "made", "ends", "may use"].map((title) => paint("gray", title)),
        ...keys.map((each) => [
          each.id,
          each.name ?? "",
          stateOf(each),
          each.created === undefined ? (each.from ?? "") : moment(each.created).slice(0, 10),
          ends(each),
          (each.models ?? ["everything"]).join(", "),
        ]),
      ]),
    );
}

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
    ["limits", key.limits?.map(sayLimit).join(", ")],
    [
      "labels",
      Object.entries(key.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
  ];
  return columns(rows.flatMap(([name, value]) => (value ? [[paint("gray", name), value]] : [])));
}
