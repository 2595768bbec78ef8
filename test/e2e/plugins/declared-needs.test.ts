// A plugin gets what it declares, in every process. Undeclared access is rejected with the
// declaration to add.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runTollgate } from "../../kit/process/command-line.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";

/** Follows its order, and returns the result. */
const plugin = (needs: string) => `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({
  api: 1, name: "reader", summary: "Reads", sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: {
    extra: { type: "string", description: "One more file" },
    at: { type: "string", "x-origin": true, description: "An address" },
  } },
  needs: ${needs},
  setup: (_options, ctx) => ({
    routes: [{ listener: "public", allowUnauthenticated: true, method: "GET", path: "/read/:what",
      async handle(x) {
        const of = x.query.get("of");
        try {
          const got = x.params.what === "env" ? ctx.env(of)
            : x.params.what === "file" ? (await ctx.readFile(of)).toString()
            : String((await ctx.fetch(of, { signal: AbortSignal.abort() })).status);
          return { status: 200, body: { pid: process.pid, got: got ?? null } };
        } catch (error) {
          return { status: 200, body: { pid: process.pid, code: error.code ?? error.details?.code, error: error.message } };
        }
      } }],
  }),
});
`;
const NEEDS = `{ metadata: true, env: ["REGION", "UNSET"], files: ({ extra }) => ["./keys", "/etc/hostname", ...(extra ? [extra] : [])] }`;

interface Got {
  pid: number;
  got?: string | null;
  error?: string;
}

let at: Daemon;
const read = async (what: "env" | "file" | "fetch", of: string, from = at): Promise<Got> => {
  const url = `${from.url}/read/${what}?of=${encodeURIComponent(of)}`;
  return (await (await fetch(url, { headers: { connection: "close" } })).json()) as Got;
};

beforeAll(async () => {
  at = await startDaemon({
    yaml: `workers: 2
frontends: [chat-completions]
middleware: [auth, { use: ./reader.ts, with: { extra: ./one.txt, at: "http://169.254.169.254/" } }]
providers: { demo: { use: demo } }
`,
    files: {
      "reader.ts": plugin(NEEDS),
      "keys/a/b.pem": "a certificate",
      "keys.pem": "beside",
      "one.txt": "one",
      "other.txt": "other",
    },
    env: { REGION: "eu-1", HIDDEN: "canary-7f3a" },
  });
});
afterAll(() => at?.[Symbol.asyncDispose]());

describe("with two processes", () => {
  it("environment variables: the declared ones, in each process", async () => {
    const pids = new Set<number>();
    while (pids.size < 2) {
      const { pid, got } = await read("env", "REGION");
      expect(got).toBe("eu-1");
      pids.add(pid);
    }
    expect(pids.has(at.pid)).toBe(false);
    expect((await read("env", "UNSET")).got).toBeNull();
    for (const name of ["HIDDEN", "PATH", "region", "__proto__", ""]) {
      const { got, error } = await read("env", name);
      expect(got).toBeUndefined();
      expect(error).toBe(`This plugin does not declare the variable ${name} in needs.env.`);
    }
  });

  it("files: the declared ones, and those in declared folders", async () => {
    expect((await read("file", "one.txt")).got).toBe("one");
    expect((await read("file", join(at.dir, "one.txt"))).got).toBe("one");
    expect((await read("file", "./keys/a/b.pem")).got).toBe("a certificate");
    expect((await read("file", "keys/../keys/a/b.pem")).got).toBe("a certificate");
    for (const path of [
      "other.txt",
      "keys.pem",
      "keys/../other.txt",
      "/etc/passwd",
      "gateway.yaml",
      ".",
    ])
      expect((await read("file", path)).error).toMatch(
        /does not declare the file .* in needs\.files/,
      );
    expect((await read("file", "keys/none")).error).toMatch(/ENOENT/);
  });

  it("a link does not lead elsewhere, and a path that is no file does not block", async () => {
    const keys = join(at.dir, "keys");
    symlinkSync(join(at.dir, "other.txt"), join(keys, "out"));
    symlinkSync("..", join(keys, "up"));
    symlinkSync("a/b.pem", join(keys, "within"));
    execFileSync("mkfifo", [join(keys, "pipe")]);
    writeFileSync(join(keys, "large"), Buffer.alloc(16 * 1024 * 1024 + 1));
    expect((await read("file", "keys/within")).got).toBe("a certificate");
    for (const path of ["keys/out", "keys/up/other.txt"])
      expect((await read("file", path)).error).toMatch(/resolves to .*other\.txt, which/);
    expect((await read("file", "keys/pipe")).error).toMatch(/is not a file/);
    expect((await read("file", "keys/a")).error).toMatch(/is not a file/);
    expect((await read("file", "keys/large")).error).toMatch(/larger than/);
    // A declared file may itself be a link, because secrets are mounted that way.
    rmSync(join(at.dir, "one.txt"));
    mkdirSync(join(at.dir, "data"));
    writeFileSync(join(at.dir, "data/one.txt"), "two");
    symlinkSync("data/one.txt", join(at.dir, "one.txt"));
    expect((await read("file", "one.txt")).got).toBe("two");
  });

  it("the command line shows the declared needs", async () => {
    const { out } = await runTollgate(at, ["plugin", "middleware.reader"]);
    expect(out).toContain(
      `needs http://169.254.169.254; the cloud's metadata service; the variables REGION, UNSET; the files ${join(at.dir, "keys")}, /etc/hostname, ${join(at.dir, "one.txt")}`,
    );
    const { plugins } = JSON.parse(
      (await runTollgate(at, ["list", "middleware", "--json"])).out,
    ) as {
      plugins: { name: string; needs: string[] }[];
    };
    expect(plugins.find(({ name }) => name === "./reader.ts")?.needs).toEqual([
      "metadata",
      "REGION",
      "UNSET",
      "files from its options",
    ]);
  });
});

describe("the metadata service", () => {
  it("is not dialed for a plugin that does not declare it, although an option names it", async () => {
    await using bare = await startDaemon({
      yaml: readFileSync(at.file, "utf8").replace(/^workers.*$/m, "workers: 1"),
      files: { "reader.ts": plugin("{}") },
    });
    for (const address of [
      "169.254.169.254",
      "0xa9fea9fe",
      "[::ffff:a9fe:a9fe]",
      "metadata.google.internal",
    ]) {
      const { error } = await read("fetch", `http://${address}/latest`, bare);
      expect(error).toMatch(
        /belongs to the cloud metadata service, which the plugin does not declare/,
      );
    }
    expect((await read("env", "REGION", bare)).error).toMatch(/does not declare/);
    expect((await read("file", "one.txt", bare)).error).toMatch(/does not declare/);
    // If declared, it would be dialed: the plugin aborts first, so that the test contacts no
    // machine.
    for (const address of ["169.254.169.254", "metadata.google.internal"]) {
      const { error } = await read("fetch", `http://${address}/latest`);
      expect(error).toBe("The request was canceled.");
    }
  });

  it("cannot be a provider's base URL", async () => {
    const yaml = `providers: { up: { use: openai-compatible, with: { base_url: "http://169.254.169.254/v1", api_key: k } } }\n`;
    await expect(startDaemon({ yaml })).rejects.toThrow(/belongs to the cloud metadata service/);
  });
});

it.each([
  ["{ exec: true }", /exec/],
  ["{ env: 'HOME' }", /needs\.env must be a list of variable names/],
  ["{ env: ['A B'] }", /needs\.env must be a list of variable names/],
  ["{ metadata: false }", /needs\.metadata/],
  ["{ files: '/etc' }", /needs\.files must be a list or a function/],
  ["{ files: () => [7] }", /needs\.files contains 7/],
])("needs: %s is rejected before any code runs", async (needs, words) => {
  writeFileSync(join(at.dir, "bad.ts"), plugin(needs));
  writeFileSync(
    join(at.dir, "bad.yaml"),
    "middleware: [./bad.ts]\nproviders: { demo: { use: demo } }\n",
  );
  const { code, out } = await runTollgate({ ...at, file: join(at.dir, "bad.yaml") }, ["check"]);
  expect(code).toBe(1);
  expect(out).toMatch(words);
});
