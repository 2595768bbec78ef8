import { createInterface } from "node:readline";
import type { ShownKey } from "../gateway/key-commands.ts";
import { parseDuration } from "../lib/duration.ts";
import { digest, parse } from "../lib/key.ts";
import { nearest } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import { type Command, CONFIG, EXIT, type Given, STATE } from "./command.ts";
import { parseLimit, sayLimit } from "./limit.ts";
import { storeDoor } from "./store.ts";
import { columns, moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const DOES = ["create", "list", "show", "revoke", "rotate", "hash"];

export const command: Command = {
  usage: "keys create|list|show|revoke|rotate|hash [id] [options]",
  about:
    "Makes and ends the keys of clients, in the running gateway, or in its store while none runs. A new key is printed\n" +
    "once and kept nowhere; `hash` reads a key from stdin and prints what `auth` takes in gateway.yaml.",
  options: {
    ...CONFIG,
    ...STATE,
    name: { value: "words", about: "create: what people call it" },
    models: {
      value: "pattern",
      about: 'create: what it may use, as in "openai/*"; everything by default',
      many: true,
    },
    frontends: {
      value: "name",
      about: "create: where it may ask; everywhere by default",
      many: true,
    },
    privacy: {
      value: "level",
      about: "create: the least privacy of its requests: off, required or strict",
    },
    expires: { value: "when", about: "create: after 30d, or on 2027-01-31" },
    limit: {
      value: "limit",
      about: "create: requests=60/minute, tokens=1000000/day, usd=5/month, concurrent=4",
      many: true,
    },
    label: { value: "name=value", about: "create: kept with every ledger row of it", many: true },
    overlap: { value: "time", about: "rotate: how long the old one still works; 24h by default" },
  },
  words: { least: 1, most: 2 },
  examples: [
    "tollgate keys create --name laptop --models 'demo/*' --limit requests=60/minute",
    "tollgate keys rotate laptop --overlap 1h",
    "pbpaste | tollgate keys hash",
  ],
  async run(given) {
    const [what = "", id] = given.words;
    if (!DOES.includes(what)) {
      const near = nearest(what, DOES);
      fail(
        "invalid",
        `keys cannot "${what}".${near === undefined ? "" : ` Did you mean "${near}"?`} See tollgate keys --help.`,
        {
          code: "usage",
        },
      );
    }
    if (["show", "revoke", "rotate"].includes(what) && id === undefined)
      fail("invalid", `Say which key: tollgate keys ${what} <id>.`, { code: "usage" });
    if (["create", "list", "hash"].includes(what) && id !== undefined)
      fail("invalid", `"${id}" is one word too many. See tollgate keys --help.`, { code: "usage" });
    if (what === "hash") return hash(given);
    const input = inputOf(given, id);
    await using door = await storeDoor(given);
    const answer = (await door.ask(`keys.${what}`, input)) as unknown as Answer;
    if (given.json) sayJson(answer);
    else tell(what, answer);
    return EXIT.fine;
  },
};

interface Answer {
  readonly secret?: string;
  readonly key?: ShownKey;
  readonly keys?: readonly ShownKey[];
}

function inputOf(given: Given, id: string | undefined): JsonObject {
  const list = (name: string) => {
    const found = given
      .texts(name)
      .flatMap((text) => text.split(","))
      .filter(Boolean);
    return found.length > 0 ? found : undefined;
  };
  const overlap = given.text("overlap") ?? "24h";
  return {
    id,
    name: given.text("name"),
    models: list("models"),
    frontends: list("frontends"),
    privacy: given.text("privacy"),
    expires: expiry(given.text("expires")),
    limits: given.texts("limit").map(parseLimit),
    labels: Object.fromEntries(given.texts("label").map(parseLabel)),
    overlapMs:
      parseDuration(overlap) ??
      fail("invalid", `--overlap is a time, as in 24h, not "${overlap}".`, { code: "usage" }),
  };
}

function expiry(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : Date.now() + span;
  if (Number.isNaN(at) || at <= Date.now())
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

function tell(what: string, { secret, key, keys = [] }: Answer): void {
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
          moment(each.created).slice(0, 10),
          ends(each),
          (each.models ?? ["everything"]).join(", "),
        ]),
      ]),
    );
}

const stateOf = ({ state }: ShownKey) => paint(state === "valid" ? "green" : "red", state);
const ends = ({ revoked, expires }: ShownKey) =>
  revoked !== undefined ? moment(revoked) : expires !== undefined ? moment(expires) : "never";

function inFull(key: ShownKey): string {
  const rows: [string, string | undefined][] = [
    ["id", key.id],
    ["name", key.name],
    ["state", stateOf(key)],
    ["made", moment(key.created)],
    ["ends", ends(key)],
    ["models", (key.models ?? ["everything"]).join(", ")],
    ["frontends", (key.frontends ?? ["everywhere"]).join(", ")],
    ["privacy", key.privacy],
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

/** A key never stands on a command line, where every process can read it. */
async function hash(given: Given): Promise<number> {
  if (process.stdin.isTTY) remark("Paste the key, then Enter:");
  const lines = createInterface({ input: process.stdin });
  const { value } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  const secret = `${(value as string | undefined) ?? ""}`.trim();
  if (secret === "") fail("invalid", "There is no key on stdin.", { code: "usage" });
  const id = parse(secret)?.id;
  if (secret.startsWith("tg_") && id === undefined)
    fail("invalid", "This is not a whole key of Tollgate's: a character is wrong or missing.");
  if (given.json) sayJson({ id: id ?? null, digest: digest(secret) });
  else say(digest(secret));
  return EXIT.fine;
}
