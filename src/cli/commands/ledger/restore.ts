import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { type BackupManifest, MANIFEST_NAME, parseManifest } from "../../../admin/backup/backup.ts";
import { restoreBackup } from "../../../admin/backup/restore.ts";
import { readTar } from "../../../lib/tar.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { configFile, quietLog, requireGatewayConfig } from "../../support/load-config.ts";
import { formatTime, paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "restore <file> [options]",
  description:
    "Restores a backup from tollgate backup into the state directory of gateway.yaml " +
    "(state_dir), which must be empty. The whole ledger is verified before anything " +
    "is written, and its newest hash is printed. Calls that were open at the time of " +
    "the backup are settled as estimated when a gateway starts.",
  options: {
    "erased-in": {
      placeholder: "file",
      description: "Later backup, whose erasures are also applied",
      isRepeatable: true,
    },
    ...CONFIG_OPTIONS,
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate restore /backups/monday.tar",
    "tollgate restore /backups/monday.tar --erased-in /backups/friday.tar",
    "ssh vault cat tollgate.tar | tollgate restore -",
  ],
  async run(given) {
    const [named = ""] = given.positionals;
    const { config } = await requireGatewayConfig(configFile(given));
    const erased = new Set<string>();
    for (const later of given.getTexts("erased-in"))
      for (const value of (await readBackupManifest(later)).erased) erased.add(value);
    const done = await restoreBackup(config, {
      log: quietLog().log,
      backup: openBackup(named),
      erased: [...erased],
    });
    const { head, sums, at, files } = done.manifest;
    if (given.json) printJson(done);
    else {
      print(
        `${paint("green", "verified")}  ${done.stateDir}, as of ${formatTime(at)}: ${plural(sums.calls, "call")}, ${plural(files.length, "file")}`,
      );
      if (done.erased > 0) print(`${paint("gray", "erased")}  ${plural(done.erased, "text")}`);
      if (head) print(`${paint("gray", "head")}  ${head.hash}`);
    }
    return EXIT_CODES.ok;
  },
};

async function* openBackup(named: string): AsyncGenerator<Uint8Array, void> {
  try {
    yield* named === "-"
      ? (process.stdin as AsyncIterable<Buffer>)
      : (createReadStream(resolve(named), { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    fail("not_found", `Cannot read ${named}: ${code}.`, { code: "no_file", cause: error });
  }
}

async function readBackupManifest(named: string): Promise<BackupManifest> {
  try {
    for await (const { name, bytes } of readTar(openBackup(named)))
      if (name === MANIFEST_NAME) {
        const chunks: Buffer[] = [];
        for await (const chunk of bytes) chunks.push(chunk);
        return parseManifest(Buffer.concat(chunks).toString());
      }
  } catch (error) {
    if (getFault(error)) throw error;
  }
  return fail("invalid", `Invalid backup: ${named}.`, { code: "no_backup" });
}
