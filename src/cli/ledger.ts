import type { Verified } from "../gateway/ledger-commands.ts";
import { nearest, plural } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type Command, CONFIG, EXIT, type Given, STATE } from "./command.ts";
import { WHICH, whichOf } from "./since.ts";
import { storeDoor } from "./store.ts";
import { entries } from "./tail.ts";
import { paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const DOES = ["verify", "export"];

export const command: Command = {
  usage: "ledger verify|export [options]",
  about:
    "verify: whether every row is what was written, and prints the newest hash; note it down, and --head tells later\n" +
    "whether the ledger was shortened since. export: every row, one JSON text a line, amounts in nano-dollars.",
  options: {
    ...CONFIG,
    ...STATE,
    head: { value: "hash", about: "verify: a hash that was printed earlier must still be in it" },
    ...WHICH,
  },
  words: { least: 1, most: 1 },
  examples: [
    "tollgate ledger verify",
    "tollgate ledger export --since 2026-11-01 > november.jsonl",
  ],
  async run(given) {
    const [what = ""] = given.words;
    if (!DOES.includes(what)) {
      const near = nearest(what, DOES);
      fail(
        "invalid",
        `ledger cannot "${what}".${near === undefined ? "" : ` Did you mean "${near}"?`} See tollgate ledger --help.`,
        { code: "usage" },
      );
    }
    return what === "verify" ? verify(given) : exported(given);
  },
};

async function verify(given: Given): Promise<number> {
  await using door = await storeDoor(given);
  const hash = given.text("head");
  const found = (await door.ask("ledger.verify", { hash })) as unknown as Verified;
  if (!found.verifiable)
    fail("conflict", "This store keeps no chain of hashes, so there is nothing to verify.");
  const { problems, head, holds } = found;
  const fine = problems.length === 0 && holds !== false;
  if (given.json) sayJson({ ok: fine, ...found });
  else {
    for (const { path, message } of problems) say(`${paint("red", path)}  ${message}`);
    if (holds === false)
      say(
        `${paint("red", "head")}  ${hash} is not in this ledger: it was shortened, or is another one.`,
      );
    if (fine) say(`${paint("green", "as it was written")}  ${plural(head?.seq ?? 0, "row")}`);
    if (head) say(`${paint("gray", "head")}  ${head.hash}`);
  }
  return fine ? EXIT.fine : EXIT.failed;
}

async function exported(given: Given): Promise<number> {
  await using door = await storeDoor(given);
  let count = 0;
  for await (const entry of entries(door, whichOf(given))) {
    say(JSON.stringify(entry));
    count++;
  }
  remark(paintRemark("gray", plural(count, "row")));
  return EXIT.fine;
}
