import { wallClock } from "../lib/wall-clock.ts";
import type { ShownKey } from "../gateway/control/key-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { parseDuration } from "../lib/duration.ts";
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { HASH } from "./key-hash.ts";
import { grantsOf, GRANTS, OF_KEY, VERSION } from "./grants.ts";
import { importedKeys } from "./imported-keys.ts";
import { tell, type KeyAnswer, type ListedKey } from "./key-words.ts";
import { ask, mounted } from "./plugin.ts";
import { storeDoor } from "./store.ts";
import { paintRemark, remark, sayJson } from "./terminal.ts";

/** Keys of one command. */
const AT_ONCE = 1_000;
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
    const answer = (await door.ask(`keys.${does}`, asked)) as unknown as KeyAnswer;
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
      options: {
        ...GRANTS,
        ...OF_KEY,
        "no-defaults": { about: "without the limits that new keys get there" },
        ...PLACE,
      },
      examples: [
        "tollgate keys create --name laptop --models 'demo/*' --limit requests=60/minute",
        "tollgate keys create --name ci --expires 30d --label team=web --account research",
      ],
    },
    (given) => ({ ...grantsOf(given), ...(given.has("no-defaults") && { defaults: false }) }),
  ),
  list: {
    usage: "keys list [options]",
    summary: COMMANDS["keys.list"].summary,
    about: `Lists the keys that there are, with what each may use. ${WHERE}`,
    options: PLACE,
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
    options: PLACE,
    takes: "id",
    examples: ["tollgate keys show laptop"],
  }),
  update: onStore(
    "update",
    {
      usage: "keys update <id> [options]",
      summary: COMMANDS["keys.update"].summary,
      about: `Changes what a key may do, from its next request on; its secret stays. What is not said stays, and "none" takes away. ${WHERE}`,
      options: { ...GRANTS, ...OF_KEY, ...VERSION, ...PLACE },
      takes: "id",
      examples: [
        "tollgate keys update laptop --limit usd=20/month --limit requests=60/minute",
        "tollgate keys update laptop --models none --expires 90d",
      ],
    },
    grantsOf,
  ),
  import: {
    usage: "keys import <file> [options]",
    summary: COMMANDS["keys.import"].summary,
    about: `Takes in the keys of another gateway by their SHA-256, as its JSON or CSV says them: clients go on with the keys that they have. ${WHERE}`,
    words: { least: 1, most: 1 },
    options: {
      account: { value: "name", about: "the account of all of them" },
      defaults: { about: "with the limits that new keys get there" },
      ...PLACE,
    },
    examples: ["tollgate keys import keys.csv", "tollgate keys import keys.json --account acme"],
    async run(given) {
      const { keys, remarks } = await importedKeys(given.words[0]!, given.text("account"));
      for (const each of remarks) remark(`${paintRemark("yellow", "warning")}  ${each}`);
      await using door = await storeDoor(given);
      const answers: KeyAnswer[] = [];
      for (let at = 0; at < keys.length; at += AT_ONCE) {
        const some = { keys: keys.slice(at, at + AT_ONCE), defaults: given.has("defaults") };
        answers.push((await door.ask("keys.import", some as never)) as never);
      }
      const all = {
        keys: answers.flatMap((each) => each.keys ?? []),
        there: answers.reduce((sum, each) => sum + (each.there ?? 0), 0),
        warnings: [...new Set(answers.flatMap((each) => each.warnings ?? []))],
      };
      if (given.json) sayJson(all);
      else tell("import", all);
      return EXIT.fine;
    },
  },
  revoke: onStore("revoke", {
    usage: "keys revoke <id> [options]",
    summary: COMMANDS["keys.revoke"].summary,
    about: `Ends a key at once; what it has open is finished. ${WHERE}`,
    options: PLACE,
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
        account: { value: "name", about: "the account; none by default" },
        ...PLACE,
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
        ...PLACE,
      },
      takes: "id",
      examples: ["tollgate keys rotate laptop --overlap 1h"],
    },
    (given) => ({ overlapMs: overlapOf(given) }),
  ),
  hash: HASH,
};

export const command: CliCommand = group("keys", "Makes and ends the keys of clients.", parts);

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

function overlapOf(given: CliInput): number {
  const text = given.text("overlap") ?? "24h";
  return (
    parseDuration(text) ??
    fail("invalid", `--overlap is a time, as in 24h, not "${text}".`, { code: "usage" })
  );
}
