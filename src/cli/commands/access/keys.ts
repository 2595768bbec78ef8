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
import { printKeys, type KeyResponse, type ListedKey } from "../../format/key-output.ts";
import { callPluginCommand, listMountedPlugins } from "../plugins/plugin.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { paintRemark, printRemark, printJson } from "../../format/terminal.ts";

/** Number of keys that one call of `keys.import` imports. */
const KEYS_PER_COMMAND = 1_000;
const WHERE_TEXT = "Uses the running gateway, or its store if no gateway is running.";

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
      description: `Creates an API key and prints it once. The key itself is not stored. ${WHERE_TEXT}`,
      options: {
        ...GRANT_OPTIONS,
        ...KEY_OPTIONS,
        "no-defaults": { description: "Skip the account's default limits for new keys" },
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
    description: `Lists API keys with their permissions. ${WHERE_TEXT}`,
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
    description: `Shows an API key by its ID, or by its name if the name is unique. ${WHERE_TEXT}`,
    options: GATEWAY_OPTIONS,
    takes: "id",
    examples: ["tollgate keys show laptop"],
  }),
  update: createSubcommand(
    "update",
    {
      usage: "keys update <id> [options]",
      summary: COMMAND_SPECS["keys.update"].summary,
      description: `Updates the permissions of an API key from its next request on. The secret is unchanged. Options that you omit are unchanged. Pass "none" to clear a value. ${WHERE_TEXT}`,
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
    description: `Imports the keys of another gateway by their SHA-256 hashes, from its JSON or CSV export. Clients keep their existing keys. ${WHERE_TEXT}`,
    positionals: { least: 1, most: 1 },
    options: {
      account: { placeholder: "name", description: "Assign all imported keys to this account" },
      defaults: { description: "Apply the account's default limits for new keys" },
      ...GATEWAY_OPTIONS,
    },
    examples: ["tollgate keys import keys.csv", "tollgate keys import keys.json --account acme"],
    async run(given) {
      const { readImportedKeys } = await import("../../../../plugins/importers/index.ts");
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
    description: `Revokes an API key immediately. Open requests are finished. ${WHERE_TEXT}`,
    options: GATEWAY_OPTIONS,
    takes: "id",
    examples: ["tollgate keys revoke laptop"],
  }),
  move: createSubcommand(
    "move",
    {
      usage: "keys move <id> [options]",
      summary: COMMAND_SPECS["keys.move"].summary,
      description: `Moves an API key to another account. Later requests count toward that account. Existing ledger rows are unchanged. ${WHERE_TEXT}`,
      options: {
        account: { placeholder: "name", description: "Target account (default: none)" },
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
      description: `Prints a new secret for an API key. The old secret stays valid for the overlap. ${WHERE_TEXT}`,
      options: {
        overlap: {
          placeholder: "time",
          description: "How long the old secret stays valid (default: 24h)",
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
  "Creates, updates, and revokes API keys.",
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
    fail("invalid", `Invalid --overlap "${text}". It must be a duration such as 24h.`, {
      code: "usage",
    })
  );
}
