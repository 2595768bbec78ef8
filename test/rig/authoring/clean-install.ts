// The environment of an author and an operator: a tarball of Tollgate, a clean folder each, npm,
// and a supported Node.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { cleanClone, linkDependencies } from "../../kit/process/clean-clone.ts";

export const root = new URL("../../..", import.meta.url).pathname;
const bin = join(root, "node_modules/.bin");
const NPM = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];

/** Without the condition that selects the source, and without variables of the test runner. */
const around = (): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS: _, VITEST: _v, NODE_ENV: _e, ...env } = process.env;
  return { ...env, NO_COLOR: "1", PATH: `${bin}${delimiter}${env["PATH"]}` };
};

export interface Done {
  readonly code: number;
  readonly out: string;
  readonly seconds: number;
}

/** Runs a program to its end. */
export function run(cwd: string, command: string, ...args: readonly string[]): Promise<Done> {
  const began = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: around(), stdio: ["ignore", "pipe", "pipe"] });
    const parts: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => parts.push(part));
    child.stderr.on("data", (part: Buffer) => parts.push(part));
    const end = (code: number, more = "") =>
      resolve({
        code,
        out: (Buffer.concat(parts).toString() + more).trim(),
        seconds: (performance.now() - began) / 1000,
      });
    child.on("error", (error) => end(127, String(error)));
    child.on("close", (code) => end(code ?? 1));
  });
}

/** The same, but any exit code other than 0 throws an error with the output. */
export async function must(cwd: string, command: string, ...args: string[]): Promise<Done> {
  const done = await run(cwd, command, ...args);
  if (done.code !== 0)
    throw new Error(
      `${command} ${args.join(" ")} ended with ${done.code}:\n${done.out.slice(-3_000)}`,
    );
  return done;
}

export interface Workshop extends Disposable {
  readonly folder: string;
  /** Tollgate as published. */
  readonly tarball: string;
}

export async function workshop(): Promise<Workshop> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-author-"));
  // Packing builds, and gateways may run from this build.
  const clone = join(folder, "tollgate");
  cleanClone(clone);
  linkDependencies(clone);
  const { out } = await must(clone, "npm", "pack", "--json", "--pack-destination", folder, ...NPM);
  return {
    folder,
    tarball: join(folder, filenameIn(out)),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The line in which npm reports the tarball, after any output of the build. */
function filenameIn(out: string): string {
  const name = /"filename": ?"([^"]+)"/.exec(out)?.[1];
  if (name === undefined) throw new Error(`npm packed nothing: ${out.slice(-500)}`);
  return name;
}

/**
 * Runs `tollgate new` of this checkout, and installs the tarball as docs/tutorials/first-plugin.md
 * describes.
 */
export async function begun(of: Workshop, words: readonly string[], dir: string): Promise<string> {
  const folder = join(of.folder, dir);
  await must(of.folder, "node", join(root, "src/cli/launch.js"), "new", ...words, "--dir", folder);
  await must(folder, "npm", "install", "--save-dev", of.tarball, ...NPM);
  return folder;
}

/**
 * Runs npm i, npm test, check-plugin, and check, as an author does. Returns the seconds of each.
 */
export async function proved(folder: string): Promise<Record<string, number>> {
  const install = await must(folder, "npm", "install", ...NPM);
  const test = await must(folder, "npm", "test");
  const checked = await must(folder, "npx", "tollgate", "check-plugin", ".");
  const config = await must(folder, "npx", "tollgate", "check");
  return {
    install: install.seconds,
    test: test.seconds,
    "check-plugin": checked.seconds,
    check: config.seconds,
  };
}

/** The tarball that `npm pack` makes of a plugin. */
export async function packed(of: Workshop, folder: string): Promise<string> {
  const { out } = await must(
    folder,
    "npm",
    "pack",
    "--json",
    "--pack-destination",
    of.folder,
    ...NPM,
  );
  return join(of.folder, filenameIn(out));
}

/** A folder with Tollgate and plugins installed from their tarballs. */
export async function operator(of: Workshop, dir: string, tarballs: readonly string[]) {
  const folder = mkdtempSync(join(of.folder, `${dir}-`));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await must(folder, "npm", "install", "--ignore-scripts", ...NPM, of.tarball, ...tarballs);
  return folder;
}

export interface Installed extends AsyncDisposable {
  readonly url: string;
  readonly key: string;
  /** The installed program in this folder. */
  tollgate(...words: string[]): Promise<Done>;
}

/** The gateway installed in a folder, with this gateway.yaml. */
export async function serving(folder: string, yaml: string, env: object = {}): Promise<Installed> {
  writeFileSync(join(folder, "gateway.yaml"), yaml);
  const program = join(folder, "node_modules/tollgate/dist/src/cli/bin.js");
  const child = spawn(join(bin, "node"), [program, "serve", "--port", "0"], {
    cwd: folder,
    env: { ...around(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const over = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  let text = "";
  const listening = new Promise<string>((resolve, reject) => {
    const heard = (chunk: Buffer) => {
      text += chunk.toString();
      const line = text.split("\n").find((each) => each.includes('"msg":"listening"'));
      if (line) resolve((JSON.parse(line) as { url: string }).url);
    };
    child.stdout.on("data", heard);
    child.stderr.on("data", heard);
    void over.then(() => reject(new Error(`it did not start:\n${text}`)));
  });
  const url = await listening;
  return {
    url,
    key: readFileSync(join(folder, ".tollgate/first-key"), "utf8").trim(),
    tollgate: (...words) => run(folder, "node", program, ...words),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await over;
    },
  };
}
