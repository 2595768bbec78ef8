// Features that Node does not have, as small C programs. They are built if a compiler exists.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface CompiledProgram extends Disposable {
  readonly file: string;
}

/**
 * Builds a source next to this file, so that other users may run it too. Undefined without a
 * compiler or outside Linux.
 */
export function compileC(source: string, ...flags: readonly string[]): CompiledProgram | undefined {
  if (process.platform !== "linux") return undefined;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-compiled-"));
  chmodSync(folder, 0o755);
  const file = join(folder, "program");
  const words = ["-O2", ...flags, "-o", file, join(import.meta.dirname, source), "-ldl"];
  const done = {
    file,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
  if (spawnSync("cc", words).status === 0) return done;
  done[Symbol.dispose]();
  return undefined;
}

/** Environment in which each fsync of a program takes longer, by the milliseconds in the file. */
export function createSlowFsync(
  file: string,
): ({ env: Record<string, string> } & Disposable) | undefined {
  const shim = compileC("slow-fsync.c", "-shared", "-fPIC");
  return (
    shim && {
      env: { LD_PRELOAD: shim.file, SLOW_FSYNC: file },
      [Symbol.dispose]: () => shim[Symbol.dispose](),
    }
  );
}
