import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import type { BackupResult } from "../../../admin/backup/backup.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { describeCommand } from "../../support/gateway-command.ts";
import {
  formatBytes,
  formatSeconds,
  paintRemark,
  printRemark,
  printJson,
} from "../../format/terminal.ts";
import { openStoreAccess } from "../../support/store-access.ts";

export const command: CliCommand = {
  ...describeCommand("backup", {
    omit: ["file"],
    options: {
      to: { placeholder: "file", description: "Output file, same as <file> (- for stdout)" },
    },
  }),
  usage: "backup [<file>] [options]",
  positionals: { least: 0, most: 1 },
  async run(given) {
    const named = given.positionals[0] ?? given.getText("to");
    if (
      named === undefined ||
      (given.positionals[0] !== undefined && given.getText("to") !== undefined)
    )
      return fail(
        "invalid",
        "Missing output file. Pass it as tollgate backup <file>. See tollgate backup --help.",
        {
          code: "usage",
        },
      );
    await using door = await openStoreAccess(given);
    const ask = async (file: string) =>
      (await door.run("backup", { file })) as unknown as BackupResult;
    const made = named === "-" ? await backupToStdout(ask) : await ask(resolve(named));
    const { file, bytes, ms, manifest } = made;
    const { head, sums } = manifest;
    if (given.json && named !== "-") printJson({ file, bytes, ms, manifest });
    else {
      printRemark(
        `${named === "-" ? "backup" : file}  ${formatBytes(bytes)}, ${formatSeconds(ms)}, ${sums.calls} calls`,
      );
      if (head) printRemark(`${paintRemark("gray", "head")}  ${head.hash}`);
    }
    return EXIT_CODES.ok;
  },
};

/**
 * Writes a backup to stdout. The gateway writes it to a folder that only this user can access, and
 * the file is then piped to stdout.
 */
async function backupToStdout(ask: (file: string) => Promise<BackupResult>): Promise<BackupResult> {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-backup-"));
  try {
    const made = await ask(join(folder, "backup.tar"));
    await pipeline(createReadStream(made.file), process.stdout, { end: false });
    return made;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
