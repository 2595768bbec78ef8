import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { COMMANDS } from "../gateway/control/table.ts";
import type { BackupMade } from "../gateway/keeping/backup.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { sizeOf, took } from "./amounts.ts";
import { storeDoor } from "./store.ts";
import { paintRemark, remark, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "backup [<file>] [options]",
  about:
    `Will ${COMMANDS.backup.summary}: the ledger with keys and limits as of one moment, the key that signs addresses, and the last good ` +
    "lists of models. A running gateway serves on meanwhile. The file is a tar, readable by its owner alone; tollgate restore " +
    "makes a state folder of it.",
  options: {
    to: { value: "file", about: "the same as <file>; - is standard output" },
    ...PLACE,
  },
  words: { least: 0, most: 1 },
  examples: [
    "tollgate backup /backups/monday.tar",
    "tollgate backup --to - | ssh vault 'cat > tollgate.tar'",
  ],
  async run(given) {
    const named = given.words[0] ?? given.text("to");
    if (named === undefined || (given.words[0] !== undefined && given.text("to") !== undefined))
      return fail("invalid", "Say where to: tollgate backup <file>. See tollgate backup --help.", {
        code: "usage",
      });
    await using door = await storeDoor(given);
    const ask = async (file: string) =>
      (await door.ask("backup", { file })) as unknown as BackupMade;
    const made = named === "-" ? await piped(ask) : await ask(resolve(named));
    const { file, bytes, ms, manifest } = made;
    const { head, sums } = manifest;
    if (given.json && named !== "-") sayJson({ file, bytes, ms, manifest });
    else {
      remark(
        `${named === "-" ? "backup" : file}  ${sizeOf(bytes)}, ${took(ms)}, ${sums.calls} calls`,
      );
      if (head) remark(`${paintRemark("gray", "head")}  ${head.hash}`);
    }
    return EXIT.fine;
  },
};

/** The gateway writes into a folder that is this user's alone; what it wrote goes on from there. */
async function piped(ask: (file: string) => Promise<BackupMade>): Promise<BackupMade> {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-backup-"));
  try {
    const made = await ask(join(folder, "backup.tar"));
    await pipeline(createReadStream(made.file), process.stdout, { end: false });
    return made;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
