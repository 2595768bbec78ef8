import { wallClock } from "../../../lib/time/wall-clock.ts";
import type { ShownKey } from "../../../admin/commands/key-commands.ts";
import type { CommandName } from "../../../admin/schema/command-specs.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
} from "../../support/command.ts";
import { describeCommand, gatewayCommand } from "../../support/gateway-command.ts";
import {
  printKeys,
  printWarnings,
  type KeyResponse,
  type ListedKey,
} from "../../format/key-output.ts";
import { callPluginCommand, listMountedPlugins } from "../plugins/plugin.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { printJson, paintRemark, printRemark, print } from "../../format/terminal.ts";
import { createInterface } from "node:readline";
import { digestKey, parseKey } from "../../../lib/api-key.ts";
import { fail } from "../../../model/error.ts";

// The command `tollgate keys hash`, which prints the hash to write in gateway.yaml instead of a
// key.

const HASH_COMMAND: Subcommand = {
  usage: "keys hash [options]",
  summary: "Hash a key for use in gateway.yaml",
  description:
    "Reads a key from stdin and prints its hash, for `auth` in gateway.yaml. With " +
    "--external, the key can come from another system, so that clients keep their " +
    "existing keys.",
  options: {
    external: { description: "Accept a key of another system, with any prefix" },
  },
  examples: ["pbpaste | tollgate keys hash", "pbpaste | tollgate keys hash --external --json"],
  run: printHash,
};

/** Minimum length in characters. A shorter key could be guessed. */
const MIN_KEY_LENGTH = 20;

/** Reads the key from stdin, because every process can read command lines. */
async function printHash(given: CliInput): Promise<number> {
  if (process.stdin.isTTY) printRemark("Paste the key, then press Enter:");
  const lines = createInterface({ input: process.stdin });
  const { value } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  const secret = `${(value as string | undefined) ?? ""}`.trim();
  if (secret === "") fail("invalid", "Missing key on stdin.", { code: "usage" });
  const id = parseKey(secret)?.id;
  const external = id === undefined;
  if (external && secret.startsWith("tg_") && !given.has("external"))
    fail(
      "invalid",
      "Invalid Tollgate key: a character is wrong or missing. If another system " +
        "created the key, pass --external.",
    );
  if (secret.length < MIN_KEY_LENGTH)
    printRemark(
      paintRemark(
        "yellow",
        `The key has only ${secret.length} characters, which is short enough to guess.`,
      ),
    );
  if (given.json) printJson({ id: id ?? null, external, digest: digestKey(secret) });
  else print(digestKey(secret));
  return EXIT_CODES.ok;
}

/** Number of keys that one call of `keys.import` imports. */
const KEYS_PER_COMMAND = 1_000;
const DEFAULT_OVERLAP_MS = 86_400_000;

const keyCommand = (verb: string) =>
  gatewayCommand<KeyResponse>(`keys.${verb}` as CommandName, {
    print: (answer) => printKeys(verb, answer),
  });

const list: Subcommand = {
  ...describeCommand("keys.list"),
  async run(given) {
    const keys = [...(await listStoreKeys(given)), ...(await listConfigKeys(given))];
    if (given.json) printJson({ keys });
    else printKeys("list", { keys });
    return EXIT_CODES.ok;
  },
};

const importKeys: Subcommand = {
  ...describeCommand("keys.import", {
    omit: ["keys"],
    options: {
      account: { placeholder: "name", description: "Assign all imported keys to this account" },
    },
  }),
  usage: "keys import <file> [options]",
  positionals: { least: 1, most: 1 },
  async run(given) {
    const { readImportedKeys } = await import("../../../../plugins/importers/index.ts");
    const { keys, warnings } = await readImportedKeys(
      given.positionals[0]!,
      given.getText("account"),
    );
    printWarnings(warnings);
    await using store = await openStoreAccess(given);
    const answers: KeyResponse[] = [];
    for (let at = 0; at < keys.length; at += KEYS_PER_COMMAND) {
      const some = {
        keys: keys.slice(at, at + KEYS_PER_COMMAND),
        defaults: given.has("defaults"),
      };
      answers.push((await store.run("keys.import", some as never)) as never);
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
};

export const command: CliCommand = createCommandGroup(
  "keys",
  "Creates, updates, and revokes API keys.",
  {
    create: keyCommand("create"),
    list,
    show: keyCommand("show"),
    update: keyCommand("update"),
    import: importKeys,
    revoke: keyCommand("revoke"),
    move: keyCommand("move"),
    rotate: gatewayCommand<KeyResponse>("keys.rotate", {
      toInput: (input) => ({ overlapMs: DEFAULT_OVERLAP_MS, ...input }),
      print: (answer) => printKeys("rotate", answer),
    }),
    hash: HASH_COMMAND,
  },
);

async function listStoreKeys(given: CliInput): Promise<readonly ListedKey[]> {
  await using store = await openStoreAccess(given);
  return ((await store.run("keys.list", {})) as unknown as { keys: ShownKey[] }).keys;
}

/**
 * Returns the keys of plugins with a command `keys`, which lists the keys that the plugin accepts.
 */
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
