// The command `tollgate keys hash`, which prints the hash that gateway.yaml contains in place of a
// key.
import { createInterface } from "node:readline";
import { digestKey, parseKey } from "../../../lib/api-key.ts";
import { fail } from "../../../model/error.ts";
import { EXIT_CODES, type CliInput, type Subcommand } from "../../support/command.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const HASH_COMMAND: Subcommand = {
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
