// The command `tollgate keys hash`, which prints the hash that gateway.yaml contains in place of a
// key.
import { createInterface } from "node:readline";
import { digestKey, parseKey } from "../../../lib/api-key.ts";
import { fail } from "../../../model/error.ts";
import { EXIT_CODES, type CliInput, type Subcommand } from "../../support/command.ts";
import { paintRemark, printRemark, print, printJson } from "../../format/terminal.ts";

export const HASH_COMMAND: Subcommand = {
  usage: "keys hash [options]",
  summary: "print what gateway.yaml takes in place of a key",
  description:
    "Reads a key from stdin and prints its hash, which `auth` takes in gateway.yaml. It may be another system's key: " +
    "clients then keep the one that they have.",
  options: {
    external: { description: "another system's key, whatever it begins with" },
  },
  examples: ["pbpaste | tollgate keys hash", "pbpaste | tollgate keys hash --external --json"],
  run: printHash,
};

/** Minimum length in characters. A shorter key could be guessed. */
const MIN_KEY_LENGTH = 20;

/** Reads the key from stdin, because every process can read command lines. */
async function printHash(given: CliInput): Promise<number> {
  if (process.stdin.isTTY) printRemark("Paste the key, then Enter:");
  const lines = createInterface({ input: process.stdin });
  const { value } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  const secret = `${(value as string | undefined) ?? ""}`.trim();
  if (secret === "") fail("invalid", "There is no key on stdin.", { code: "usage" });
  const id = parseKey(secret)?.id;
  const external = id === undefined;
  if (external && secret.startsWith("tg_") && !given.has("external"))
    fail(
      "invalid",
      "This is not a whole key of Tollgate's: a character is wrong or missing. If another system made it, say --external.",
    );
  if (secret.length < MIN_KEY_LENGTH)
    printRemark(
      paintRemark("yellow", `It has ${secret.length} characters: one so short can be guessed.`),
    );
  if (given.json) printJson({ id: id ?? null, external, digest: digestKey(secret) });
  else print(digestKey(secret));
  return EXIT_CODES.ok;
}
