// npm, as an operator would call it, with what an installer of plugins never lets it do: run what it installs.
import { execFile } from "node:child_process";
import { fail } from "../../model/error.ts";

const ALWAYS = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

export interface NpmAnswer {
  readonly ok: boolean;
  readonly out: string;
  readonly err: string;
}

export const npm = (folder: string, ...words: readonly string[]): Promise<NpmAnswer> =>
  new Promise((resolve) =>
    execFile(
      "npm",
      [...words, ...ALWAYS],
      { cwd: folder, maxBuffer: 1 << 26, shell: process.platform === "win32" },
      (error, out, err) =>
        resolve({ ok: !error, out, err: `${err}${error && !err ? String(error) : ""}` }),
    ),
  );

export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly integrity: string | undefined;
  readonly unpackedSize: number;
}

/** What a name, a version or a tarball would bring. */
export async function published(folder: string, spec: string): Promise<PublishedPackage> {
  const { ok, out, err } = await npm(folder, "pack", "--dry-run", "--json", spec);
  if (!ok) return fail("not_found", `npm has no ${spec}: ${err.trim().slice(0, 400)}`);
  const said = JSON.parse(out) as readonly PublishedPackage[] | Record<string, PublishedPackage>;
  const [first] = Object.values(said) as PublishedPackage[];
  return first ?? fail("not_found", `npm has no ${spec}.`);
}

/** Whether the registry has signed what is installed, and whether its build is attested, in words. */
export async function provenance(folder: string, name: string): Promise<string> {
  const { out } = await npm(folder, "audit", "signatures", "--json");
  try {
    const { invalid = [], missing = [] } = JSON.parse(out) as {
      invalid?: readonly { name: string }[];
      missing?: readonly { name: string }[];
    };
    if (invalid.some((one) => one.name === name)) return "its signature is not valid";
    if (missing.some((one) => one.name === name)) return "the registry has not signed it";
    return "the registry has signed it";
  } catch {
    return "no registry says where it comes from";
  }
}
