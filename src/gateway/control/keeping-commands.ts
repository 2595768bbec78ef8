// The ledger's life, as an operator leads it: copies, archives, sums in place of rows, a person taken out. The same on the control socket
// of a running gateway and on the store itself. What the store does without is said by the command that asks for it.
import { existsSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { ArchiveFacts, Erasure, PrunePlan, Pruned } from "../../plugin/keeping.ts";
import type { Store } from "../../plugin/store.ts";
import { type BackupRequest, makeBackup } from "../keeping/backup.ts";
import { cannot } from "../keeping/cannot.ts";
import { answering } from "./input.ts";
import type { InputOf } from "./table.ts";

export interface ArchiveMade extends ArchiveFacts {
  readonly file: string;
  readonly bytes: number;
  readonly ms: number;
}

/** What a prune was, or would be. */
export interface PruneAnswer {
  readonly plan: PrunePlan;
  readonly done:
    | (Pruned & { readonly ms: number; readonly archive: ArchiveMade | undefined })
    | null;
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
    "ledger.prune": (input) => pruned(of, input),
    erase: async (input) => {
      const erase = store.keeping?.erase ?? cannot(use, "erases", store.keeping?.instead?.erase);
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

/** Rows that were written today may be settled yet, and corrected. */
const YOUNGEST_MS = 86_400_000;

async function pruned(
  of: BackupRequest,
  { before, dryRun, archive }: InputOf<"ledger.prune">,
): Promise<PruneAnswer> {
  const { plan, prune }: Partial<NonNullable<Store["keeping"]>> = of.store.keeping ?? {};
  if (!plan || !prune) return cannot(of.use, "prunes its rows");
  if (before > wallClock() - YOUNGEST_MS)
    fail("invalid", "/before: expected a moment of at least a day ago.", {
      code: "bad_input",
      param: "/before",
    });
  const found = await plan(before);
  if (dryRun === true) return { plan: found, done: null };
  const began = performance.now();
  const kept =
    archive === undefined ? undefined : await archived(of, absolute(archive), before, true);
  const done = await prune(before);
  return {
    plan: found,
    done: { ...done, ms: Math.round(performance.now() - began), archive: kept },
  };
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
