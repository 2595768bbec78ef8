// npm, as an operator would call it, with what an installer of plugins never lets it do: run what it installs.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

/** npm waits a minute for a server that is not there, and asks it thrice. */
const IMPATIENT = ["--fetch-retries=0", "--fetch-timeout=20000"];
const NPM_HOST = "registry.npmjs.org";

interface Named {
  readonly name: string;
}

/** Whether the registry has signed what is installed, and whether its build is attested, in words. Nothing is said that npm has not. */
export async function provenance(folder: string, name: string): Promise<string> {
  const from = registryOf(folder, name);
  if (from === undefined) return "no registry says where it comes from";
  const words = ["audit", "signatures", "--json", "--include-attestations", ...IMPATIENT];
  const { out } = await npm(folder, ...words);
  const { invalid, missing, verified = [] } = auditedIn(out);
  if (!Array.isArray(invalid) || !Array.isArray(missing))
    return "npm could not find out whether the registry has signed it";
  const among = (list: readonly Named[]) => list.some((one) => one.name === name);
  if (among(invalid)) return "its signature is not valid";
  if (among(missing)) return "the registry has not signed it";
  if (among(verified)) return "the registry has signed it, and its build is attested";
  // Of a registry without keys npm says nothing.
  return from === NPM_HOST
    ? "the registry has signed it"
    : `npm has nothing against its signatures, which ${from} need not make`;
}

/** What npm's audit says, or an error of its own. */
function auditedIn(text: string): {
  readonly invalid?: readonly Named[];
  readonly missing?: readonly Named[];
  readonly verified?: readonly Named[];
} {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

/** The host that it was installed from by its version; undefined where it is a file, an address or a repository. */
function registryOf(folder: string, name: string): string | undefined {
  try {
    const home = homeOf(folder);
    const read = (file: string) => JSON.parse(readFileSync(join(home, file), "utf8"));
    const wanted: unknown = read("package.json").dependencies?.[name];
    if (typeof wanted !== "string" || !/^[\^~]?\d/.test(wanted)) return undefined;
    const { resolved } = read("node_modules/.package-lock.json").packages[`node_modules/${name}`];
    return new URL(resolved).host;
  } catch {
    return undefined;
  }
}

/** Where npm installs what is asked for in this folder. */
function homeOf(folder: string): string {
  const above = dirname(folder);
  return above === folder || existsSync(join(folder, "package.json")) ? folder : homeOf(above);
}
