// A plugin from a registry: the downloaded files are shown and locked, but not run, and nothing is
// claimed that npm does not know.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { describeProvenance } from "../../../src/cli/install/npm.ts";
import { createTestFolder, type TestFolder } from "../../kit/process/command-line.ts";

const NAME = "tollgate-provider-parrot";
afterEach(() => void vi.unstubAllEnvs());

describe("the description of a package's source", () => {
  const RESOLVED = `https://registry.npmjs.org/${NAME}/-/${NAME}-1.2.3.tgz`;

  /** An npm with a fixed output, which records its calls. */
  async function house(said: string, wanted = "1.2.3", resolved = RESOLVED): Promise<TestFolder> {
    const packages = { [`node_modules/${NAME}`]: { version: "1.2.3", resolved } };
    const made = await createTestFolder({
      "package.json": JSON.stringify({ dependencies: { [NAME]: wanted } }),
      "said.json": said,
    });
    mkdirSync(join(made.path, "node_modules"));
    writeFileSync(join(made.path, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
    mkdirSync(join(made.path, "bin"));
    const npm = join(made.path, "bin/npm");
    writeFileSync(
      npm,
      '#!/bin/sh\necho "$@" >> asked\ncat said.json\ngrep -q error said.json && exit 1\nexit 0\n',
    );
    chmodSync(npm, 0o755);
    vi.stubEnv("PATH", `${join(made.path, "bin")}${delimiter}${process.env["PATH"]}`);
    return made;
  }

  const [NONE, ONE] = [[], [{ name: NAME, version: "1.2.3" }]];
  it.each<[string, object | string, string, string?, string?]>([
    ["signed", { invalid: NONE, missing: NONE }, "signed by the registry"],
    [
      "attested",
      { invalid: NONE, missing: NONE, verified: ONE },
      "signed by the registry, with an attested build",
    ],
    ["not signed", { invalid: NONE, missing: ONE }, "not signed by the registry"],
    ["signed wrongly", { invalid: ONE, missing: NONE }, "the registry's signature is invalid"],
    ["npm fails", { error: { code: "ENOTFOUND" } }, "npm could not check"],
    ["npm says nothing", "", "npm could not check"],
    [
      "of a registry of the house",
      { invalid: NONE, missing: NONE },
      "npm.house.example may not sign packages",
      "1.2.3",
      RESOLVED.replace("registry.npmjs.org", "npm.house.example"),
    ],
  ])("%s", async (_name, said, words, wanted, resolved) => {
    const text = typeof said === "string" ? said : JSON.stringify(said);
    await using at = await house(text, wanted, resolved);
    expect(await describeProvenance(at.path, NAME)).toContain(words);
    expect(readFileSync(join(at.path, "asked"), "utf8")).toMatch(/^audit signatures --json/);
  });

  it("runs npm in a folder inside the one where npm installs", async () => {
    await using at = await house(JSON.stringify({ invalid: NONE, missing: NONE }));
    mkdirSync(join(at.path, "within"));
    writeFileSync(join(at.path, "within/said.json"), readFileSync(join(at.path, "said.json")));
    expect(await describeProvenance(join(at.path, "within"), NAME)).toBe("signed by the registry");
  });

  it.each(["file:parrot.tgz", "https://parrot.example/parrot.tgz", "github:parrot/parrot"])(
    "does not query npm for %s, which no registry has",
    async (wanted) => {
      await using at = await house(JSON.stringify({ invalid: NONE, missing: NONE }), wanted);
      expect(await describeProvenance(at.path, NAME)).toBe("its registry is unknown");
      expect(existsSync(join(at.path, "asked"))).toBe(false);
    },
  );
});

/** A registry with one package, whose script would write a file. */
async function registry(at: TestFolder) {
  const source = join(at.path, "source/package");
  mkdirSync(source, { recursive: true });
  const manifest = {
    name: NAME,
    version: "1.2.3",
    type: "module",
    exports: "./index.js",
    scripts: { postinstall: "touch ran" },
  };
  writeFileSync(join(source, "package.json"), JSON.stringify(manifest));
  writeFileSync(
    join(source, "index.js"),
    'export default { "~tollgate": "provider", api: 1, name: "parrot", summary: "Says one thing", needs: { env: ["PARROT_HOME"] }, setup: () => ({ endpoints: [] }) };',
  );
  const { stdout } = spawnSync("tar", ["-czf", "-", "-C", join(at.path, "source"), "package"]);
  const integrity = `sha512-${createHash("sha512").update(stdout).digest("base64")}`;
  const server = createServer((req, res) => {
    if (req.url?.endsWith(".tgz")) return void res.end(stdout);
    res.setHeader("content-type", "application/json");
    if (req.url !== `/${NAME}`) return void res.writeHead(404).end("{}");
    const dist = { integrity, tarball: `${url}/${NAME}/-/${NAME}-1.2.3.tgz` };
    const versions = { "1.2.3": { ...manifest, dist } };
    res.end(JSON.stringify({ name: NAME, "dist-tags": { latest: "1.2.3" }, versions }));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const end = () => new Promise((resolve) => server.close(resolve));
  return { url, integrity, [Symbol.asyncDispose]: async () => void (await end()) };
}

it("a plugin from a registry is shown, installed at its exact version, and locked by its checksum, and none of its scripts run", async () => {
  await using at = await createTestFolder({
    "package.json": JSON.stringify({ private: true, type: "module" }),
    "gateway.yaml": "providers:\n  bird: { use: parrot }\n",
  });
  await using from = await registry(at);
  const env = { npm_config_registry: from.url, npm_config_cache: join(at.path, "cache") };
  const { code, out, err } = await at.tollgate(["plugin", "add", NAME, "--yes"], { env });
  expect([code, out]).toEqual([0, expect.stringContaining(`Locked ${NAME}@1.2.3 in`)]);
  expect(err).toContain("needs the variable PARROT_HOME");
  expect(err).not.toContain("; signed by the registry");
  const lock = readFileSync(join(at.path, "plugins.lock.yaml"), "utf8");
  expect(lock.replaceAll(/\s+/g, " ")).toContain(from.integrity);
  const { dependencies } = JSON.parse(readFileSync(join(at.path, "package.json"), "utf8"));
  expect(dependencies).toEqual({ [NAME]: "1.2.3" });
  expect(existsSync(join(at.path, "node_modules", NAME, "ran"))).toBe(false);
  expect((await at.said(["check"])).code).toBe(0);
});
