// What the README shows is run: its YAML is checked, its requests are sent, its provider answers.
import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { builtin } from "../../plugins/index.ts";
import { COMMANDS } from "../../src/cli/main.ts";
import { loadConfig } from "../../src/config/load.ts";
import { printProblems } from "../../src/config/report.ts";
import { createLoader } from "../../src/loader/load.ts";
import { startGateway, type LocalGateway } from "../kit/in-process.ts";
import { KEPT } from "../kit/program.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...globSync("{plugins,src}/**/README.md", { cwd: ROOT }),
  ...globSync("docs/**/*.md", { cwd: ROOT }),
];

interface Block {
  page: string;
  line: number;
  language: string;
  text: string;
}

const blocks: Block[] = PAGES.filter((page) => existsSync(join(ROOT, page))).flatMap((page) => {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map((m) => ({
    page,
    line: text.slice(0, m.index).split("\n").length,
    language: m[1]!,
    text: m[2]!,
  }));
});
const of = (language: string) => blocks.filter((b) => b.language === language);
const named = (b: Block) => `${b.page}:${b.line}`;

/** Keys that the examples ask for. */
function exampleOf(name: string | symbol): string | undefined {
  if (typeof name !== "string") return undefined;
  if (name === "ALERTS_SECRET") return `whsec_${"example+".repeat(4)}`;
  if (name.startsWith("TOLLGATE_") && name.endsWith("_URL"))
    return "postgres://db.internal/tollgate";
  return /_(KEY|TOKEN)$/.test(name) ? `sk-example-${name}-0000-0000` : undefined;
}
const ENV = new Proxy({} as Record<string, string>, {
  get: (_t, name) => exampleOf(name),
  has: () => true,
  getOwnPropertyDescriptor: (_t, name) => {
    const value = exampleOf(name);
    return value === undefined ? undefined : { value, configurable: true, enumerable: true };
  },
});

const load = createLoader({ builtin: builtin as never, host: {} });

describe("every YAML example", () => {
  it("there are some", () => expect(of("yaml").length).toBeGreaterThan(0));

  const schema = JSON.parse(
    readFileSync(join(ROOT, "schemas/gateway.schema.json"), "utf8"),
  ) as object;
  const valid = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema);

  it.each(of("yaml").map((b) => [named(b), b] as const))(
    "%s is a config without errors",
    async (_name, block) => {
      const { problems } = await loadConfig(join(ROOT, "gateway.yaml"), {
        env: ENV,
        load,
        text: block.text,
      });
      expect(printProblems(problems.filter((p) => p.severity === "error"))).toBe("");
      const tree: unknown = parse(block.text);
      expect(valid(tree), JSON.stringify(valid.errors)).toBe(true);
    },
  );

  it("the shipped gateway.yaml too, and a typo in a plugin's option fails", async () => {
    const text = await readFile(join(ROOT, "gateway.yaml"), "utf8");
    expect(valid(parse(text)), JSON.stringify(valid.errors)).toBe(true);
    expect(valid(parse("middleware: [{ use: auth, with: { anonymus: true } }]"))).toBe(false);
    expect(valid(parse("providers: { x: { use: openai, with: { api_kee: x } } }"))).toBe(false);
  });
});

describe("every example that a page shows", () => {
  const OWN = /^\/\/ (examples\/[\w-]+\.ts)\n/;
  const shown = of("ts").filter(({ text }) => OWN.test(text));

  it.each(shown.map((b) => [named(b), b] as const))("%s is the file", (_name, { text }) => {
    expect(text).toBe(readFileSync(join(ROOT, OWN.exec(text)![1]!), "utf8"));
  });

  it("every file in examples/ stands on a page", () => {
    const files = globSync("examples/*.ts", { cwd: ROOT }).sort();
    expect([...new Set(shown.map(({ text }) => OWN.exec(text)![1]!))].sort()).toEqual(files);
  });

  it("and every package there in their list", () => {
    const list = readFileSync(join(ROOT, "examples/packages/README.md"), "utf8");
    const packages = globSync("examples/packages/*/", { cwd: ROOT }).map((path) => basename(path));
    expect(packages.length).toBeGreaterThan(7);
    expect(packages.filter((name) => !list.includes(`(${name}`))).toEqual([]);
  });
});

describe("every link and every file that a page names", () => {
  const pages = PAGES.filter((page) => existsSync(join(ROOT, page)));
  it.each(pages)("%s leads somewhere", (page) => {
    const text = readFileSync(join(ROOT, page), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((m) =>
      join(dirname(page), m[1]!),
    );
    const named = /^(docs\/|CONTRIBUTING|SECURITY)/.test(page)
      ? [...text.matchAll(/`((?:src|plugins|test|docs|examples|schemas)\/[\w./-]+)`/g)].map(
          (m) => m[1]!,
        )
      : [];
    expect([...links, ...named].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe("every command that a page speaks of", () => {
  it.each(PAGES.filter((page) => existsSync(join(ROOT, page))))("%s: is there", (page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const spoken = [...text.matchAll(/(?:npx |`)tollgate ([a-z]+(?:-[a-z]+)*)/g)].map((m) => m[1]!);
    expect(spoken.filter((name) => !Object.hasOwn(COMMANDS, name))).toEqual([]);
  });
});

describe("every request", () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await startGateway({ yaml: await readFile(join(ROOT, "gateway.yaml"), "utf8") });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  const here = (text: string) => text.replaceAll("http://127.0.0.1:8787", gateway.url);

  it.each(
    of("sh")
      .filter((b) => b.text.startsWith("curl"))
      .map((b) => [named(b), b] as const),
  )("%s answers", async (_name, block) => {
    const { stdout } = await run("bash", ["-c", here(block.text)], {
      env: { ...process.env, ...KEPT, KEY: gateway.key },
    });
    const answer = JSON.parse(stdout);
    expect(answer).not.toHaveProperty("error");
    const [, path = ""] =
      /127\.0\.0\.1:8787\/\S+?\/(audio|embeddings|rerank|moderations|images|(?<!chat\/)completions)\b/.exec(
        block.text,
      ) ?? [];
    if (path === "") return expect(stdout).toContain("Hello, gate.");
    if (path === "audio") return expect(answer.text).toBe("A harbour at dusk.");
    if (path === "embeddings") return expect(answer.data[0].embedding.length).toBeGreaterThan(100);
    if (path === "completions") return expect(answer.choices[0].text).toMatch(/\w/);
    if (path === "moderations") return expect(answer.results[0]).toHaveProperty("flagged");
    if (path === "rerank") return expect(answer.results[0].index).toBe(1);
    const [{ url, b64_json: bytes }] = answer.data;
    if (bytes) return expect(Buffer.from(bytes, "base64").toString("latin1", 1, 4)).toBe("PNG");
    const picture = await fetch(url);
    return expect(picture.headers.get("content-type")).toBe("image/png");
  });

  it.each(of("js").map((b) => [named(b), b] as const))("%s answers", async (_name, block) => {
    // In reach of the packages, and of no tool that looks at the tree meanwhile.
    const folder = join(ROOT, "node_modules/.cache/tests");
    const file = join(folder, `readme-${process.pid}.mjs`);
    await mkdir(folder, { recursive: true });
    await writeFile(file, here(block.text));
    try {
      const { stdout } = await run(join(ROOT, "node_modules/.bin/node"), [file], {
        env: { ...process.env, ...KEPT, KEY: gateway.key },
      });
      expect(stdout).toContain("Hello, gate.");
    } finally {
      await rm(file);
    }
  });
});

const OURS = /^npx tollgate(?= )/;

/** What asks npm for a package that is not published yet, or a provider that an author has: the rigs `template` and `author` bring these. */
const AUTHORS = [
  "npx tollgate new provider acme\n",
  "npx tollgate record acme/",
  "npx tollgate plugin add tollgate-provider-acme",
];

/** Those that docs/money.md speaks of. */
const ACCOUNTS = "accounts:\n  acme: {}\n  research: { parent: acme }\n";

/** Its receiver is not there, which a test of it says. */
const ALERTS = `observers:
  - console
  - { use: alerts, with: { to: { chat: { url: "http://127.0.0.1:9/", format: slack } } } }
`;

describe("every command of ours", () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    const yaml = await readFile(join(ROOT, "gateway.yaml"), "utf8");
    gateway = await startGateway({
      yaml: yaml.replace("port: 9787", "port: 0").replace(/^observers: .*$/m, ALERTS) + ACCOUNTS,
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  // What npx finds in a checkout, on whatever Node this machine has.
  const bin = join(ROOT, "src/cli/launch.js");

  it.each(
    of("sh")
      .filter(({ text }) => OURS.test(text) && !AUTHORS.some((line) => text.startsWith(line)))
      .map((b) => [named(b), b] as const),
  )("%s runs, line by line, beside a gateway", async (_name, block) => {
    const text = block.text
      .replaceAll(new RegExp(OURS, "gm"), bin)
      .replaceAll("http://127.0.0.1:8787", gateway.url);
    const { stdout } = await run("bash", ["-ec", text], {
      cwd: gateway.dir,
      env: { ...process.env, ...KEPT, KEY: gateway.key },
    });
    expect(stdout).not.toContain('"error"');
  });
});

describe("commands", () => {
  const scripts = (
    JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    }
  ).scripts;
  it.each(
    of("sh")
      .filter((b) => b.text.startsWith("npm"))
      .map((b) => [named(b), b] as const),
  )("%s are scripts that exist", (_name, block) => {
    for (const [, script] of block.text.matchAll(
      /npm (?:run (?:-s )?)?(start|test|[\w:]+)(?: |$|\n)/g,
    ))
      if (script !== "ci" && script !== "install" && script !== "i")
        expect(scripts).toHaveProperty(script!);
  });
});

describe("every provider", () => {
  it.each(
    of("ts")
      .filter((b) => b.text.includes("defineProvider"))
      .map((b) => [named(b), b] as const),
  )("%s loads from a file and answers", async (_name, block) => {
    const server = createServer((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({
          id: "c",
          object: "chat.completion",
          created: 1,
          model: "m",
          choices: [
            {
              index: 0,
              message: { role: "assistant", content: "from acme" },
              finish_reason: "stop",
            },
          ],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    });
    await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
    const dir = await mkdtemp(join(tmpdir(), "author-"));
    // A credential is one key, or the two things that a token is fetched with.
    const credential = block.text.includes("client_secret")
      ? 'client_id: acme, client_secret: "${env:ACME}"'
      : 'api_key: "${env:ACME}"';
    try {
      await using gateway = await startGateway({
        dir,
        files: { "my-provider.ts": block.text },
        yaml: `frontends: [chat-completions]\nproviders:\n  acme: { use: ./my-provider.ts, with: { ${credential}, base_url: "http://127.0.0.1:${(server.address() as AddressInfo).port}" } }\n`,
        env: { ACME: "sk-acme-00000" },
      });
      const res = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({ model: "acme/m", messages: [{ role: "user", content: "x" }] }),
      });
      expect(await res.text()).toContain("from acme");
    } finally {
      server.close();
      await rm(dir, { recursive: true, force: true });
    }
  });
});
