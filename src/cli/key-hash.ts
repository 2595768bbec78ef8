// `tollgate keys hash`: the hash that gateway.yaml takes in place of a key.
import { createInterface } from "node:readline";
import { digest, parse } from "../lib/key.ts";
import { fail } from "../model/error.ts";
import { EXIT, type CliInput, type Part } from "./command.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const HASH: Part = {
  usage: "keys hash [options]",
  summary: "print what gateway.yaml takes in place of a key",
  about:
    "Reads a key from stdin and prints its hash, which `auth` takes in gateway.yaml. It may be another system's key: " +
    "clients then keep the one that they have.",
  options: {
    foreign: { about: "another system's key, whatever it begins with" },
  },
  examples: ["pbpaste | tollgate keys hash", "pbpaste | tollgate keys hash --foreign --json"],
  run: hash,
};

/** A shorter key could be guessed. */
const SHORTEST = 20;

/** A key never stands on a command line, where every process can read it. */
async function hash(given: CliInput): Promise<number> {
  if (process.stdin.isTTY) remark("Paste the key, then Enter:");
  const lines = createInterface({ input: process.stdin });
  const { value } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  const secret = `${(value as string | undefined) ?? ""}`.trim();
  if (secret === "") fail("invalid", "There is no key on stdin.", { code: "usage" });
  const id = parse(secret)?.id;
  const foreign = id === undefined;
  if (foreign && secret.startsWith("tg_") && !given.has("foreign"))
    fail(
      "invalid",
      "This is not a whole key of Tollgate's: a character is wrong or missing. If another system made it, say --foreign.",
    );
  if (secret.length < SHORTEST)
    remark(
      paintRemark("yellow", `It has ${secret.length} characters: one so short can be guessed.`),
    );
  if (given.json) sayJson({ id: id ?? null, foreign, digest: digest(secret) });
  else say(digest(secret));
  return EXIT.fine;
}
