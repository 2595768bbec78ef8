import { wallClock } from "../../../lib/time/wall-clock.ts";
import type { ShownKey } from "../../../admin/commands/key-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { parseDuration } from "../../../lib/time/units.ts";
import { fail } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { HASH_COMMAND } from "./key-hash.ts";
import {
  parseGrants,
  GRANT_OPTIONS,
  KEY_OPTIONS,
  VERSION_OPTION,
} from "../../support/grant-options.ts";
import { readImportedKeys } from "../../import/key-import.ts";
import { printKeys, type KeyResponse, type ListedKey } from "../../format/key-output.ts";
import { callPluginCommand, listMountedPlugins } from "../plugins/plugin.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { paintRemark, printRemark, printJson } from "../../format/terminal.ts";

/** Number of keys that one call of `keys.import` imports. */
const KEYS_PER_COMMAND = 1_000;
const WHERE_TEXT = "In the running gateway, or in its store while none runs.";

/** Creates a subcommand that runs the store command `id`. */
const createSubcommand = (
  does: string,
  of: Omit<Subcommand, "run" | "positionals"> & { readonly takes?: "id" },
  input: (given: CliInput) => JsonObject = () => ({}),
): Subcommand => ({
  ...of,
  positionals: { least: of.takes ? 1 : 0, most: of.takes ? 1 : 0 },
  async run(given) {
    const asked = { id: given.positionals[0], ...input(given) };
    await using door = await openStoreAccess(given);
    const answer = (await door.run(`keys.${does}`, asked)) as unknown as KeyResponse;
    if (given.json) printJson(answer);
    else printKeys(does, answer);
    return EXIT_CODES.ok;
  },
});

const subcommands: Readonly<Record<string, Subcommand>> = {
  create: createSubcommand(
    "create",
    {
      usage: "keys create [options]",
      summary: COMMAND_SPECS["keys.create"].summary,
      description: `Makes a key of a client and prints it: once, for it is kept nowhere. ${WHERE_TEXT}`,
      options: {
        ...GRANT_OPTIONS,
        ...KEY_OPTIONS,
        "no-defaults": { description: "without the limits that new keys get there" },
        ...GATEWAY_OPTIONS,
      },
      examples: [
        "tollgate keys create --name laptop --models 'demo/*' --limit requests=60/minute",
        "tollgate keys create --name ci --expires 30d --label team=web --account research",
      ],
    },
    (given) => ({ ...parseGrants(given), ...(given.has("no-defaults") && { defaults: false }) }),
  ),
  list: {
    usage: "keys list [options]",
    summary: COMMAND_SPECS["keys.list"].summary,
    description: `Lists the keys that there are, with what each may use. ${WHERE_TEXT}`,
    options: GATEWAY_OPTIONS,
    examples: ["tollgate keys list", "tollgate keys list --json"],
    async run(given) {
      const keys = [...(await listStoreKeys(given)), ...(await listConfigKeys(given))];
      if (given.json) printJson({ keys });
      else printKeys("list", { keys });
      return EXIT_CODES.ok;
    },
  },
  show: createSubcommand("show", {
    usage: "keys show <id> [options]",
    summary: COMMAND_SPECS["keys.show"].summary,
    description: `Shows a key by its id, or by its name where only one has it. ${WHERE_TEXT}`,
    options: GATEWAY_OPTIONS,
    takes: "id",
    examples: ["tollgate keys show laptop"],
  }),
  update: createSubcommand(
    "update",
    {
      usage: "keys update <id> [options]",
      summary: COMMAND_SPECS["keys.update"].summary,
      description: `Changes what a key may do, from its next request on; its secret stays. What is not said stays, and "none" takes away. ${WHERE_TEXT}`,
      options: { ...GRANT_OPTIONS, ...KEY_OPTIONS, ...VERSION_OPTION, ...GATEWAY_OPTIONS },
      takes: "id",
      examples: [
        "tollgate keys update laptop --limit usd=20/month --limit requests=60/minute",
        "tollgate keys update laptop --models none --expires 90d",
      ],
    },
    parseGrants,
  ),
  import: {
    usage: "keys import <file> [options]",
    summary: COMMAND_SPECS["keys.import"].summary,
    description: `Takes in the keys of another gateway by their SHA-256, as its JSON or CSV says them: clients go on with the keys that they have. ${WHERE_TEXT}`,
    positionals: { least: 1, most: 1 },
    options: {
      account: { placeholder: "name", description: "the account of all of them" },
      defaults: { description: "with the limits that new keys get there" },
      ...GATEWAY_OPTIONS,
    },
    examples: ["tollgate keys import keys.csv", "tollgate keys import keys.json --account acme"],
    async run(given) {
      const { keys, warnings } = await readImportedKeys(
        given.positionals[0]!,
        given.getText("account"),
      );
      for (const each of warnings) printRemark(`${paintRemark("yellow", "warning")}  ${each}`);
      await using door = await openStoreAccess(given);
      const answers: KeyResponse[] = [];
      for (let at = 0; at < keys.length; at += KEYS_PER_COMMAND) {
        const some = {
          keys: keys.slice(at, at + KEYS_PER_COMMAND),
          defaults: given.has("defaults"),
        };
        answers.push((await door.run("keys.import", some as never)) as never);
      }
      const all = {
        keys: answers.flatMap((each) => each.keys ?? []),
        existing: answers.reduce((sum, each) => sum + (each.existing ?? 0), 0),
        warnings: [...new Set(answers.flatMap((each) => each.warnings ?? []))],
      };
      if (given.json) printJson(all);
      else printKeys("import", all);
      return EXIT_CODES.ok;
    },
  },
  revoke: createSubcommand("revoke", {
    usage: "keys revoke <id> [options]",
    summary: COMMAND_SPECS["keys.revoke"].summary,
    description: `Ends a key at once; what it has open is finished. ${WHERE_TEXT}`,
    options: GATEWAY_OPTIONS,
    takes: "id",
    examples: ["tollgate keys revoke laptop"],
  }),
  move: createSubcommand(
    "move",
    {
      usage: "keys move <id> [options]",
      summary: COMMAND_SPECS["keys.move"].summary,
      description: `What it uses from now on counts there; its rows stay where they are. ${WHERE_TEXT}`,
      options: {
        account: { placeholder: "name", description: "the account; none by default" },
        ...GATEWAY_OPTIONS,
      },
      takes: "id",
      examples: ["tollgate keys move laptop --account research"],
    },
    (given) => ({ account: given.getText("account") }),
  ),
  rotate: createSubcommand(
    "rotate",
    {
      usage: "keys rotate <id> [options]",
      summary: COMMAND_SPECS["keys.rotate"].summary,
      description: `Prints a new secret of the same key; the old one still works for a while. ${WHERE_TEXT}`,
      options: {
        overlap: {
          placeholder: "time",
          description: "how long the old one still works; 24h by default",
        },
        ...GATEWAY_OPTIONS,
      },
      takes: "id",
      examples: ["tollgate keys rotate laptop --overlap 1h"],
    },
    (given) => ({ overlapMs: parseOverlap(given) }),
  ),
  hash: HASH_COMMAND,
};

export const command: CliCommand = createCommandGroup(
  "keys",
  "Makes and ends the keys of clients.",
  subcommands,
);

async function listStoreKeys(given: CliInput): Promise<readonly ListedKey[]> {
  await using door = await openStoreAccess(given);
  return ((await door.run("keys.list", {})) as unknown as { keys: ShownKey[] }).keys;
}

/** Returns the keys of plugins that have a command `keys`: the keys that such a plugin accepts. */
async function listConfigKeys(given: CliInput): Promise<readonly ListedKey[]> {
  const found: ListedKey[] = [];
  for (const { id, commands } of await listMountedPlugins(given))
    if (commands.some(({ name }) => name === "keys"))
      for (const key of (await callPluginCommand(
        given,
        `${id}/keys`,
        {},
      )) as unknown as readonly ListedKey[])
        found.push({
          ...key,
          from: id,
          state: (key.expires ?? Infinity) <= wallClock() ? "expired" : "valid",
        });
  return found;
}

function parseOverlap(given: CliInput): number {
  const text = given.getText("overlap") ?? "24h";
  return (
    parseDuration(text) ??
    fail("invalid", `--overlap is a time, as in 24h, not "${text}".`, { code: "usage" })
  );
}
