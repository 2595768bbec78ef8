// A gateway.yaml is saved under load: whatever program saves it, no request sees an incomplete
// file.
import { open, rename, rm, writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { type Daemon, startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

/** The only provider is at the end: any incomplete part has none, or is no YAML. */
const yaml = (n: number) => `# ${"what this file is about ".repeat(40)}
frontends: [chat-completions, models]
middleware: [auth, zdr, limits, { use: usage, with: { label_headers: [x-n${n}] } }]
models: { alias: [demo/echo] }
providers: { demo: { use: demo } }
`;

/** The ways in which programs save a file. A read may happen between two steps. */
const WAYS: Record<
  string,
  (file: string, text: string, look: () => Promise<unknown>) => Promise<void>
> = {
  "writes at once": (file, text) => writeFile(file, text),
  "cuts off, waits and writes": async (file, text, look) => {
    await writeFile(file, "");
    await look();
    await writeFile(file, text);
  },
  "writes in pieces": async (file, text, look) => {
    const handle = await open(file, "w");
    for (let at = 0; at < text.length; at += 400) {
      await handle.write(text.slice(at, at + 400));
      if (at % 1_200 === 0) await look();
    }
    await handle.close();
  },
  "writes beside it and renames": async (file, text) => {
    await writeFile(`${file}.swp`, text);
    await rename(`${file}.swp`, file);
  },
  "moves the old one away first": async (file, text, look) => {
    await rename(file, `${file}~`);
    await look();
    await writeFile(file, text);
    await rm(`${file}~`);
  },
};

const ask = ({ url, key }: Daemon) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "alias", messages: [{ role: "user", content: "x" }] }),
  });

/** Requests one after another until stopped. Returns the wrong responses. */
function steadily(gateway: Daemon) {
  const failures: string[] = [];
  let over = false;
  let answered = 0;
  const loop = async () => {
    while (!over) {
      const res = await ask(gateway);
      const text = await res.text();
      if (res.status !== 200) failures.push(`${res.status} ${text}`);
      answered++;
    }
  };
  const loops = Promise.all([loop(), loop(), loop(), loop()]);
  return async () => {
    over = true;
    await loops;
    return { failures, answered };
  };
}

/** Waits until the gateway has loaded another save by itself. */
async function taken({ log }: Daemon): Promise<void> {
  const reloads = () => log.filter(({ msg }) => msg === "reloaded").length;
  const before = reloads();
  await until(() => reloads() > before);
}

/** The last save is in use, however busy the machine is. */
async function inForce(gateway: Daemon, text: string): Promise<void> {
  await writeFile(gateway.file, text);
  expect(await gateway.ask("reload")).toMatchObject({ ok: true });
}

it("two hundred ordinary saves under load: no request fails", async () => {
  await using gateway = await startDaemon({ yaml: yaml(0) });
  const stop = steadily(gateway);
  for (let n = 1; n <= 200; n++) {
    await writeFile(gateway.file, yaml(n));
    // Some directly after each other, and some far enough apart that each is loaded.
    if (n % 20 === 0) await taken(gateway);
  }
  await inForce(gateway, yaml(999));
  const { failures, answered } = await stop();
  expect(failures).toEqual([]);
  expect(answered).toBeGreaterThan(0);
});

it.each(Object.keys(WAYS))("a program that %s: no request fails", async (way) => {
  await using gateway = await startDaemon({ yaml: yaml(0) });
  const stop = steadily(gateway);
  for (let n = 1; n <= 3; n++) {
    await WAYS[way]!(gateway.file, yaml(n), () => gateway.ask("reload"));
    await taken(gateway);
  }
  await inForce(gateway, yaml(999));
  expect((await stop()).failures).toEqual([]);
});

it("a change that would leave no provider is rejected with a fix, and accepted with it", async () => {
  await using gateway = await startDaemon({ yaml: yaml(0), args: ["--no-watch"] });
  const reload = async (text: string) => {
    await gateway.write(text);
    return (await gateway.ask("reload")) as {
      ok: boolean;
      problems: { id: string; hint?: string }[];
    };
  };
  const bare = "frontends: [chat-completions]\nmiddleware: [auth]\n";
  for (const [text, id] of [
    ["", "config/empty-file"],
    ["# nothing\n", "config/empty-file"],
    [bare, "config/no-provider-left"],
    [`${bare}providers:\n`, "config/no-provider-left"],
    [`${bare}providers: { demo: { use: demo, when: "" } }\n`, "config/no-provider-left"],
  ] as const) {
    const refused = await reload(text);
    expect([refused.ok, refused.problems.map((p) => p.id)], text).toEqual([false, [id]]);
    expect((await ask(gateway)).status).toBe(200);
  }
  expect((await reload(bare)).problems[0]!.hint).toContain("allow_empty: true");
  expect((await reload(`${bare}allow_empty: true\n`)).ok).toBe(true);
  expect((await ask(gateway)).status).toBe(404);
  expect((await reload(yaml(1))).ok).toBe(true);
  expect((await ask(gateway)).status).toBe(200);
});
