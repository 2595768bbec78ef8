// URLs of images, through a whole gateway: their lifetime, their clients, and their files.
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { preloaded } from "../../rig/mutants/changed-source.ts";
import { raised, studio, type Studio } from "./studio.ts";
import { until } from "../../kit/wait.ts";

const HOUR_MS = 3_600_000;

/** A wall clock that a test moves forward, for gateways with this environment. */
async function jumping() {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-clock-"));
  const file = join(dir, "clock");
  const plant = new URL("../../rig/mutants/jumping-clock.mjs", import.meta.url);
  return {
    program: () => ({ ...preloaded(undefined, plant.href), CLOCK_FILE: file }),
    skip: (ms: number) => writeFile(file, String(ms)),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

const settings = (lifetime: string, more = "") =>
  `files: { lifetime: ${lifetime}${more} }\npublic_url: http://pictures.test/at/\n`;

const draw = async (s: Studio, more: object = {}): Promise<URL> => {
  const made = await s.client().images.generate({
    model: "demo/image",
    prompt: "A harbour",
    size: "16x16" as "1024x1024",
    response_format: "url",
    ...more,
  });
  return new URL(made.data![0]!.url!);
};
/** Sent to the gateway itself, whatever its public URL is. */
const get = (s: Studio, { pathname, search }: URL, method = "GET") =>
  fetch(s.gateway.url + pathname.replace(/^\/at/, "") + search, { method });
const files = async (s: Studio) =>
  (await readdir(join(s.gateway.stateDir, "files"))).filter((name) => name.endsWith(".png"));
const counts = async (s: Studio) => ((await s.gateway.ask("status")) as any).files;

describe("an image URL", () => {
  it("is built from public_url, never from a Host header, and has the file's type", async () => {
    await using s = await studio({ hosts: ["demo"], yaml: settings("1h") });
    const body = JSON.stringify({
      model: "demo/image",
      prompt: "A harbour",
      size: "16x16",
      response_format: "url",
    });
    const answer = await new Promise<string>((resolve, reject) => {
      const asked = request(
        `${s.gateway.url}/v1/images/generations`,
        {
          method: "POST",
          headers: {
            host: "localhost:9",
            "x-forwarded-host": "evil.test",
            forwarded: "host=evil.test",
            "content-type": "application/json",
            authorization: "Bearer alice-key",
          },
        },
        async (res) => resolve(Buffer.concat(await res.toArray()).toString()),
      );
      asked.on("error", reject).end(body);
    });
    const url = new URL(JSON.parse(answer).data[0].url);
    expect(url.origin).toBe("http://pictures.test");
    expect(url.pathname).toMatch(/^\/at\/files\/[\w-]{32}\.png$/);
    const got = await get(s, url);
    expect([got.status, got.headers.get("content-type")]).toEqual([200, "image/png"]);
    const head = await get(s, url, "HEAD");
    expect([head.status, head.headers.get("content-length")]).toEqual([
      200,
      String((await got.bytes()).length),
    ]);
  });

  it("is valid until its expiry and rejected afterwards; the file is deleted, and both are counted", async () => {
    await using time = await jumping();
    await using s = await studio({ hosts: ["demo"], yaml: settings("1h"), program: time.program });
    const from = Date.now();
    const url = await draw(s);
    const end = Number(url.searchParams.get("e")) * 1000;
    // An hour after a moment during the generation, in whole seconds.
    expect(end).toBeGreaterThan(from + HOUR_MS - 1_000);
    expect(end).toBeLessThan(from + 2 * HOUR_MS);
    let good = 1;
    expect((await get(s, url)).status).toBe(200);
    // URLs that were created before the clock jumped are valid.
    await time.skip(HOUR_MS);
    await until(async () => {
      const { status } = await get(s, url);
      if (status === 200) good++;
      else expect(status).toBe(404);
      return status !== 200;
    });
    expect(await (await get(s, url)).json()).toMatchObject({
      error: { code: "file_expired", message: expect.stringContaining("temporary") },
    });
    expect(await files(s)).toHaveLength(1);
    const { served, rejected } = await counts(s);
    expect(served).toBe(good);
    expect(rejected).toBe(2);
    // The next start removes expired files, and so does a timer every minute.
    await s.restart();
    expect(await files(s)).toEqual([]);
    expect(await counts(s)).toMatchObject({ files: 0, bytes: 0, expired: 1 });
    expect(await (await get(s, url)).json()).toMatchObject({ error: { code: "file_expired" } });
  });

  it("survives concurrent restarts and clean-ups, including kill -9", async () => {
    await using time = await jumping();
    await using s = await studio({ hosts: ["demo"], yaml: settings("10h"), program: time.program });
    const long = await Promise.all(Array.from({ length: 12 }, () => draw(s)));
    // From here on URLs expire soon. Existing ones keep their expiry.
    const config = await readFile(s.gateway.file, "utf8");
    await s.gateway.write(config.replace("lifetime: 10h", "lifetime: 1h"));
    await s.gateway.line(({ msg }) => msg === "reloaded");
    const short = await Promise.all(Array.from({ length: 12 }, () => draw(s)));
    const before = new Set(await files(s));
    expect(before.size).toBe(24);
    let busy = true;
    const readers = long.slice(0, 4).map(async (url) => {
      const seen = new Set<number>();
      while (busy)
        seen.add(
          await get(s, url).then(
            ({ status }) => status,
            () => 0,
          ),
        );
      return seen;
    });
    await time.skip(2 * HOUR_MS);
    await until(async () => (await get(s, short[0]!)).status === 404);
    await s.gateway.stop("SIGKILL");
    await s.restart();
    busy = false;
    // While the gateway is down there is no response, and no reader gets a 404.
    for (const seen of await Promise.all(readers))
      expect([...seen].filter((status) => status !== 0 && status !== 200)).toEqual([]);
    const statuses = (urls: URL[]) =>
      Promise.all(urls.map(async (url) => (await get(s, url)).status));
    expect(new Set(await statuses(long))).toEqual(new Set([200]));
    expect(new Set(await statuses(short))).toEqual(new Set([404]));
    expect(await files(s)).toHaveLength(12);
    expect(await counts(s)).toMatchObject({ files: 12, expired: 12 });
  });

  it("is not created without space, and the client receives a fix", async () => {
    await using s = await studio({
      hosts: ["demo"],
      yaml: settings("1h", ", max_file: 2KB, max_total: 3KB"),
    });
    const first = await draw(s);
    const size = (await (await get(s, first)).bytes()).length;
    expect(size).toBeGreaterThan(100);
    const tooLarge = await raised(draw(s, { size: "1024x1024" }));
    expect(tooLarge).toMatchObject({ status: 413, code: "file_too_large" });
    let full: any;
    for (let i = 0; i < 3_000 / size && !full; i++)
      full = await draw(s).then(
        () => undefined,
        (error) => error,
      );
    expect(full).toMatchObject({ status: 503, code: "files_full" });
    expect(full.message).toContain("b64_json");
    expect((await get(s, first)).status).toBe(200);
    const bytes = await s.client().images.generate({
      model: "demo/image",
      prompt: "A harbour",
      size: "1024x1024",
    });
    expect(bytes.data![0]!.b64_json).toBeTruthy();
    expect((await counts(s)).bytes).toBeLessThanOrEqual(3_000);
  });

  it("is not created beyond a key's share, and no other provider is called or put in cooldown", async () => {
    await using s = await studio({
      hosts: ["openai", "demo"],
      yaml: `${settings("1h", ", max_key: 2KB")}models: { any: [demo/image, openai/gpt-image-2] }\n`,
    });
    let full: any;
    for (let i = 0; i < 30 && !full; i++)
      full = await draw(s, { model: "any" }).then(
        () => undefined,
        (error) => error,
      );
    expect(full).toMatchObject({ status: 429, code: "files_share_full" });
    expect(full.headers.get("x-tollgate-attempts")).toBeNull();
    expect(full.headers.get("x-tollgate-provider")).toBeNull();
    expect(((await s.gateway.ask("status")) as any).cooldowns).toEqual([]);
  });

  it("is rejected if nothing may be stored, before an image is generated", async () => {
    await using s = await studio({ hosts: ["openai", "demo"], yaml: settings("1h") });
    for (const model of ["demo/image", "openai/gpt-image-2"])
      expect(
        await raised(
          s
            .client()
            .images.generate(
              { model, prompt: "A harbour", response_format: "url" },
              { headers: { "service-zdr": "required" } },
            ),
        ),
      ).toMatchObject({
        status: 400,
        param: "response_format",
        code: "zdr_feature_conflict",
        message: expect.stringContaining("b64_json"),
      });
    expect(s.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
    expect(await files(s)).toEqual([]);
  });
});
