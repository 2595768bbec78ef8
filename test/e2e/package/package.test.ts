// The published package, as an operator gets it: packed from a clean clone, installed into an empty
// folder, and run from there.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLAUDE, fakeAws, KEYS, MODEL, REGION } from "../../clouds/aws-fake.ts";
import { fakeAzure, KEY as AZURE_KEY } from "../../clouds/azure-fake.ts";
import { ACCOUNT, fakeGoogle } from "../../clouds/google-fake.ts";
import { cleanClone, linkDependencies } from "../../kit/process/clean-clone.ts";

const root = new URL("../../..", import.meta.url).pathname;
const bin = join(root, "node_modules/.bin");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};
const folder = mkdtempSync(join(tmpdir(), "tollgate-package-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The Node of the tests comes first. Without the condition that selects the source. */
const env = { ...process.env, NODE_OPTIONS: "", PATH: `${bin}${delimiter}${process.env["PATH"]}` };

/** Without the checkout's Node. */
const machinePath = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((path) => !path.includes("node_modules"))
  .join(delimiter);

function run(
  command: string,
  args: readonly string[],
  cwd = folder,
  around: NodeJS.ProcessEnv = env,
) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env: around,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const NPM = ["--no-audit", "--no-fund", "--loglevel=error"];
let packed: string[] = [];

const clone = join(folder, "clone");

const pack = () => run("npm", ["pack", "--json", "--pack-destination", folder, ...NPM], clone);

beforeAll(() => {
  cleanClone(clone);
  const early = pack();
  expect([early.status, early.stderr]).toEqual([1, expect.stringContaining("Run it first")]);
  linkDependencies(clone);
  const made = pack();
  expect(made.status, made.stderr).toBe(0);
  const said = JSON.parse(made.stdout) as Packed[] | Record<string, Packed>;
  const [{ filename, files }] = Object.values(said) as [Packed];
  packed = files.map(({ path }) => path);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const install = run("npm", [
    "install",
    "--prefer-offline",
    "--ignore-scripts",
    ...NPM,
    `./${filename}`,
  ]);
  expect(install.status, install.stderr).toBe(0);
}, 240_000);

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

test("the package contains only what runs", () => {
  expect(packed).toContain("dist/src/cli/bin.js");
  expect(packed).toContain("src/cli/launch.js");
  for (const name of ["LICENSE", "README.md", "gateway.yaml", "package.json"])
    expect(packed).toContain(name);
  // The package contains third-party code, whose licenses require notices.
  expect(packed).toContain("dist/THIRD_PARTY_LICENSES");
  const licences = readFileSync(join(clone, "dist/THIRD_PARTY_LICENSES"), "utf8");
  for (const name of ["undici", "h3", "srvx", "listhen", "yaml", "pino"])
    expect(licences).toMatch(new RegExp(`^${name} \\d`, "m"));
  expect(licences.split(`\n${"-".repeat(80)}\n`).filter((each) => each.length < 500)).toEqual([]);
  // Some model metadata is from third parties, whose licenses require attribution.
  expect(packed).toContain("plugins/providers/facts/THIRD_PARTY_NOTICES");
  // Files linked by the package's pages.
  const linked = ["CONTRIBUTING.md", "SECURITY.md", "test/bench/speed.svg"];
  const other = packed.filter(
    (path) =>
      !linked.includes(path) &&
      !/^plugins\/.*README\.md$/.test(path) &&
      !/^(dist|schemas|docs|examples|templates|deploy)\//.test(path) &&
      !/^(package\.json|gateway\.yaml|README\.md|LICENSE|src\/cli\/launch\.js|plugins\/.*\/THIRD_PARTY_NOTICES)$/.test(
        path,
      ),
  );
  expect(other).toEqual([]);
  const source = packed.filter((path) => /\.(test|bench)\.|(?<!\.d)\.ts$/.test(path));
  expect(source.filter((path) => !/^(examples|templates)\//.test(path))).toEqual([]);
});

test("contains every page and every example, as in the tree", () => {
  for (const folder of ["docs", "examples", "templates", "deploy"]) {
    const files = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
    const paths = files
      .filter((each) => each.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
    expect(paths.length).toBeGreaterThan(4);
    expect(packed.filter((path) => path.startsWith(`${folder}/`)).sort()).toEqual(paths.sort());
  }
});

test("npm ci with an older Node prints no error: the installed gateway runs on its own Node", () => {
  const { status, stdout, stderr } = run(
    "npm",
    ["ci", "--dry-run", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"],
    clone,
    // `npm run --silent` passes its silence on.
    { ...process.env, PATH: machinePath, npm_config_loglevel: undefined },
  );
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/added \d+ packages/);
});

test("npx tollgate --version", () => {
  const { status, stdout } = run("npx", ["tollgate", "--version"]);
  expect([status, stdout]).toEqual([0, `${version}\n`]);
});

test("its built-in schemas are precompiled, so a start needs no compiler", () => {
  const compilers = `import m from "node:module";
    process.on("exit", () => console.error(Object.keys(m._cache).filter((f) => /ajv.dist.core/.test(f)).length));`;
  const { status, stderr } = run(process.execPath, [
    `--import=data:text/javascript,${encodeURIComponent(compilers)}`,
    "node_modules/tollgate/dist/src/cli/bin.js",
    "check",
  ]);
  expect([status, stderr]).toEqual([0, "0\n"]);
});

test("the default config passes check, with every built-in plugin", () => {
  const { status, stdout } = run("npx", ["tollgate", "check"]);
  expect(stdout).toMatch(/^the default config is valid/);
  expect(status).toBe(0);
  const list = run("npx", ["tollgate", "list", "--json"]);
  const { plugins } = JSON.parse(list.stdout) as { plugins: unknown[] };
  const source = run(process.execPath, [
    "--conditions=tollgate-source",
    join(root, "src/cli/bin.ts"),
    "list",
    "--json",
  ]);
  expect(plugins).toEqual((JSON.parse(source.stdout) as { plugins: unknown[] }).plugins);
});

/** The installed program, until it listens. */
async function serving(more: readonly string[] = [], variables: NodeJS.ProcessEnv = {}) {
  const child = spawn(
    process.execPath,
    ["node_modules/tollgate/dist/src/cli/bin.js", "serve", "--port", "0", ...more],
    {
      cwd: folder,
      env: { ...env, ...variables },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const exited = once(child, "exit");
  let text = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    const line = text.split("\n").find((each) => each.includes('"msg":"listening"'));
    if (line) resolve((JSON.parse(line) as { url: string }).url);
  });
  void exited.then(() => reject(new Error(text)));
  const url = await promise;
  const key = readFileSync(join(folder, ".tollgate/first-key"), "utf8").trim();
  return {
    ask: (model: string) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
      }),
    ended() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

test("it serves, responds, and ends", async () => {
  const { ask, ended } = await serving();
  const response = await ask("demo/echo");
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
  expect(await ended()).toEqual([0, null]);
});

test("each cloud package installs from its own tarball, is found by its name, and responds", async () => {
  const tarballs = ["aws", "vertex", "azure-foundry"].map((name) => {
    const made = run(
      "npm",
      ["pack", "--json", "--pack-destination", folder, ...NPM],
      join(clone, "plugins/providers", name),
    );
    expect(made.status, made.stderr).toBe(0);
    const said = JSON.parse(made.stdout) as Packed[] | Record<string, Packed>;
    const [{ filename, files }] = Object.values(said) as [Packed];
    const others = files.filter(({ path }) => !/^(dist\/|package\.json$|README\.md$)/.test(path));
    expect(others).toEqual([]);
    return `./${filename}`;
  });
  const install = run("npm", [
    "install",
    "--prefer-offline",
    "--ignore-scripts",
    ...NPM,
    ...tarballs,
  ]);
  expect(install.status, install.stderr).toBe(0);
  await using amazon = await fakeAws();
  await using google = await fakeGoogle();
  await using azure = await fakeAzure();
  writeFileSync(
    join(folder, "clouds.yaml"),
    `frontends: [chat-completions]
providers:
  bedrock: { use: aws, with: { region: ${REGION}, runtime_url: "${amazon.url}", access_key_id: ${KEYS.id}, secret_access_key: "\${env:AWS_KEY}" } }
  vertex: { use: vertex, with: { project: my-project, base_url: "${google.url}", token_url: "${google.url}/token", service_account: "\${env:GOOGLE_KEY}" } }
  foundry: { use: azure-foundry, with: { base_url: "${azure.url}", api_key: "\${env:AZURE_KEY}" } }
`,
  );
  const { ask, ended } = await serving(["-c", "clouds.yaml"], {
    AWS_KEY: KEYS.secret,
    GOOGLE_KEY: ACCOUNT,
    AZURE_KEY,
  });
  for (const model of [
    `bedrock/${MODEL}`,
    `bedrock/${CLAUDE}`,
    "vertex/gemini-3-pro-preview",
    "vertex/claude-sonnet-4-5@20250929",
    "foundry/my-gpt",
    "foundry/claude-one",
  ]) {
    const response = await ask(model);
    expect([model, response.status]).toEqual([model, 200]);
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
  }
  expect(await ended()).toEqual([0, null]);
});

test("each example package is built, packed, installed, checked, and mounted as its page says", async () => {
  const shelf = join(clone, "examples/packages");
  const names = readdirSync(shelf, { withFileTypes: true }).flatMap((one) =>
    // One is in Python, and has its own tests.
    one.isDirectory() && existsSync(join(shelf, one.name, "package.json")) ? [one.name] : [],
  );
  const tarballs = names.map((name) => {
    const place = join(shelf, name);
    const tsc = run(join(bin, "tsc"), ["-p", "tsconfig.build.json"], place);
    expect([name, tsc.stdout]).toEqual([name, ""]);
    const made = run(
      "npm",
      ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...NPM],
      place,
    );
    expect(made.status, made.stderr).toBe(0);
    const said = JSON.parse(made.stdout) as Packed[] | Record<string, Packed>;
    return `./${(Object.values(said) as [Packed])[0].filename}`;
  });
  const how = ["install", "--prefer-offline", "--ignore-scripts", ...NPM];
  const install = run("npm", [...how, ...tarballs]);
  expect(install.status, install.stderr).toBe(0);
  for (const name of names) {
    const checked = run("npx", ["tollgate", "check-plugin", `tollgate-${name}`]);
    expect([name, checked.status, checked.stdout]).toEqual([
      name,
      0,
      expect.stringMatching(/: (\d+) of \1 checks passed/),
    ]);
    const page = readFileSync(join(shelf, name, "README.md"), "utf8");
    writeFileSync(join(folder, "example.yaml"), /```yaml\n([\s\S]*?)```/.exec(page)![1]!);
    const variables = { LANGFUSE_SECRET_KEY: "x", WEBHOOK_SECRET: "x".repeat(16), EXA_TOKEN: "x" };
    const fine = run("npx", ["tollgate", "check", "-c", "example.yaml"], folder, {
      ...env,
      ...variables,
    });
    expect([name, fine.status, fine.stdout + fine.stderr]).toEqual([name, 0, expect.anything()]);
    const { ask, ended } = await serving(["-c", "example.yaml"], variables);
    expect([name, (await ask("demo/echo")).status]).toEqual([
      name,
      name === "middleware-remote-guard" ? 503 : 200,
    ]);
    expect(await ended()).toEqual([0, null]);
  }
}, 600_000);

test("its types compile for plugin authors, under common compiler settings", () => {
  writeFileSync(
    join(folder, "plugin.ts"),
    `import { defineMiddleware, fail } from "tollgate/plugin";
     import { messages } from "tollgate/protocols/messages";
     import { createGateway } from "tollgate";
     export const seen = [typeof messages, typeof createGateway];
     export default defineMiddleware({
       api: 1, name: "x", summary: "x", sends: "nowhere",
       options: { type: "object", additionalProperties: false, required: ["n"], properties: { n: { type: "number" } } },
       setup: ({ n }) => ({ admit: () => (n.toFixed() === "1" ? fail("forbidden", "no") : undefined) }),
     });`,
  );
  const settings =
    "--noEmit --strict --module nodenext --target es2024 --skipLibCheck false --types node";
  const typeRoots = ["--typeRoots", join(root, "node_modules/@types")];
  const tsc = run(join(bin, "tsc"), [...settings.split(" "), ...typeRoots, "plugin.ts"]);
  const ours = tsc.stdout
    .split("\n")
    .filter((line) => /^(plugin|node_modules\/tollgate\/)/.test(line));
  expect(ours).toEqual([]);
});

test("an old Node prints the fix and does nothing else", () => {
  const old = machinePath
    .split(delimiter)
    .map((path) => join(path, "node"))
    .find((node) => Number(/^v(\d+)/.exec(run(node, ["--version"]).stdout ?? "")?.[1]) < 24);
  // Only the text is checked without one on this machine.
  if (old === undefined)
    return void expect(readFileSync(join(clone, "dist/src/cli/bin.js"), "utf8")).toContain(
      "or newer",
    );
  const { status, stdout, stderr } = run(old, [
    "node_modules/tollgate/dist/src/cli/bin.js",
    "serve",
  ]);
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^Tollgate needs Node 24 or newer; this is v\d+[\s\S]*npx -y -p node@24 node \S+ serve\n$/,
  );
});

test("no build files are left next to it", () => {
  expect(readdirSync(join(clone, "dist")).sort()).toEqual([
    "THIRD_PARTY_LICENSES",
    "console",
    "plugins",
    "schemas",
    "src",
  ]);
});
