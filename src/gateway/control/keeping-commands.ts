// The ledger's life, as an operator leads it: copies, archives, sums in place of rows, a person taken out. The same on the control socket
// of a running gateway and on the store itself. What the store does without is said by the command that asks for it.
import { existsSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { fail } from "../../model/error.ts";
import type { ArchiveFacts, Erasure } from "../../plugin/keeping.ts";
import { type BackupRequest, makeBackup } from "../keeping/backup.ts";
import { cannot } from "../keeping/cannot.ts";
import { answering } from "./input.ts";
import type { InputOf } from "./table.ts";

export interface ArchiveMade extends ArchiveFacts {
  readonly file: string;
  readonly bytes: number;
  readonly ms: number;
}

/** `forget`: resolves when no process remembers anything of a key any more. */
export function keepingCommands(of: BackupRequest, forget: () => Promise<void>) {
  const { store, use } = of;
  return answering({
    backup: ({ file }) => makeBackup(of, absolute(file)),
    "ledger.archive": ({ file, before, labels }) =>
      archived(of, absolute(file), before ?? Number.MAX_SAFE_INTEGER, labels ?? true),
    "ledger.state": async () => {
      const state = store.keeping?.state ?? cannot(use, "tells its size");
      return state();
    },
    erase: async (input) => {
      const erase = store.keeping?.erase ?? cannot(use, "erases");
      const { values } = await erase(erasureOf(input));
      await forget();
      return { texts: values.length, values };
    },
  });
}

/** The gateway's folder is not the one in which the command was given. */
function absolute(file: string): string {
  return isAbsolute(file)
    ? file
    : fail("invalid", `/file: expected an absolute path, not "${file}".`, {
        code: "bad_input",
        param: "/file",
      });
}

async function archived(
  { store, use }: BackupRequest,
  file: string,
  before: number,
  labels: boolean,
): Promise<ArchiveMade> {
  const archive = store.keeping?.archive ?? cannot(use, "archives its rows");
  if (existsSync(file)) fail("conflict", `${file} is there already.`, { code: "file_exists" });
  const began = performance.now();
  await open(file, "wx", 0o600).then(
    (handle) => handle.close(),
    (error: Error) =>
      fail("conflict", `${file} cannot be written: ${error.message}`, { code: "not_writable" }),
  );
  try {
    const facts = await archive(file, { before, labels });
    const { size } = await stat(file);
    return { file, bytes: size, ms: Math.round(performance.now() - began), ...facts };
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}

function erasureOf({ label, key }: InputOf<"erase">): Erasure {
  if ((label === undefined) === (key === undefined))
    return fail("invalid", "/label: expected a label or a key, and not both.", {
      code: "bad_input",
      param: "/label",
    });
  if (key !== undefined) return { key };
  const at = label!.indexOf("=");
  if (at < 1)
    return fail(
      "invalid",
      `/label: expected a name and a value, as in user=4711, not "${label}".`,
      {
        code: "bad_input",
        param: "/label",
      },
    );
  return { label: { name: label!.slice(0, at), value: label!.slice(at + 1) } };
}
