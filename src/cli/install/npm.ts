// Runs npm in the same way as an operator, except that packages never run their install scripts.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fail } from "../../model/error.ts";

const NPM_FLAGS = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

export interface NpmResult {
  readonly ok: boolean;
  readonly out: string;
  readonly err: string;
}

export const runNpm = (folder: string, ...words: readonly string[]): Promise<NpmResult> =>
  new Promise((resolve) =>
    execFile(
      "npm",
      [...words, ...NPM_FLAGS],
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

/** Returns the metadata of the package that a name, a version, or a tarball resolves to. */
export async function viewPackage(folder: string, spec: string): Promise<PublishedPackage> {
  const { ok, out, err } = await runNpm(folder, "pack", "--dry-run", "--json", spec);
  if (!ok) return fail("not_found", `${spec} not found in npm: ${err.trim().slice(0, 400)}`);
  const output = JSON.parse(out) as readonly PublishedPackage[] | Record<string, PublishedPackage>;
  const [first] = Object.values(output) as PublishedPackage[];
  return first ?? fail("not_found", `${spec} not found in npm.`);
}

/** By default, npm waits 60 s for an unreachable registry and tries three times. */
const FAST_FAIL_FLAGS = ["--fetch-retries=0", "--fetch-timeout=20000"];
const NPM_HOST = "registry.npmjs.org";

interface NamedPackage {
  readonly name: string;
}

/**
 * Describes whether the registry signed the installed package, and whether its build is attested.
 * States nothing that npm did not report.
 */
export async function describeProvenance(folder: string, name: string): Promise<string> {
  const from = registryHost(folder, name);
  if (from === undefined) return "its registry is unknown";
  const words = ["audit", "signatures", "--json", "--include-attestations", ...FAST_FAIL_FLAGS];
  const { out } = await runNpm(folder, ...words);
  const { invalid, missing, verified = [] } = parseAudit(out);
  if (!Array.isArray(invalid) || !Array.isArray(missing))
    return "npm could not check the registry's signature";
  const among = (list: readonly NamedPackage[]) => list.some((one) => one.name === name);
  if (among(invalid)) return "the registry's signature is invalid";
  if (among(missing)) return "not signed by the registry";
  if (among(verified)) return "signed by the registry, with an attested build";
  // npm reports nothing about a registry without keys.
  return from === NPM_HOST
    ? "signed by the registry"
    : `npm found no invalid signature, but ${from} may not sign packages`;
}

/** Parses the output of npm's audit, or an error of npm itself. */
function parseAudit(text: string): {
  readonly invalid?: readonly NamedPackage[];
  readonly missing?: readonly NamedPackage[];
  readonly verified?: readonly NamedPackage[];
} {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

/**
 * Returns the registry host that a package was installed from. Returns undefined for a file, a URL,
 * or a repository.
 */
function registryHost(folder: string, name: string): string | undefined {
  try {
    const home = npmRoot(folder);
    const read = (file: string) => JSON.parse(readFileSync(join(home, file), "utf8"));
    const wanted: unknown = read("package.json").dependencies?.[name];
    if (typeof wanted !== "string" || !/^[\^~]?\d/.test(wanted)) return undefined;
    const { resolved } = read("node_modules/.package-lock.json").packages[`node_modules/${name}`];
    return new URL(resolved).host;
  } catch {
    return undefined;
  }
}

/** Returns the folder in which npm installs packages for this folder. */
function npmRoot(folder: string): string {
  const above = dirname(folder);
  return above === folder || existsSync(join(folder, "package.json")) ? folder : npmRoot(above);
}
