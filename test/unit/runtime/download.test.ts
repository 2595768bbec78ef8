import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { createDownloader } from "../../../src/runtime/services/download.ts";
import { createEgressGuard } from "../../../src/lib/net/egress-guard.ts";
import { getFault, type Fault } from "../../../src/model/error.ts";

const servers: Server[] = [];
/**
 * On 127.0.0.1, the only address that these tests allow. 127.0.0.2 and localhost's ::1 stay
 * internal.
 */
const serve = async (listener: RequestListener, host = "127.0.0.1"): Promise<string> => {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, host, listening));
  return `http://${host}:${(server.address() as AddressInfo).port}`;
};
afterAll(() => servers.forEach((server) => server.close().closeAllConnections()));

const files = createDownloader(createEgressGuard((address) => address === "127.0.0.1"));
afterAll(() => files[Symbol.asyncDispose]());

const faultFrom = async (promise: Promise<unknown>): Promise<Fault> =>
  promise.then(
    () => expect.unreachable("nothing was refused"),
    (error) => getFault(error) ?? expect.unreachable(String(error)),
  );

describe("a file from a remote URL", () => {
  it("is returned with its type, and no credential is sent", async () => {
    let seen: object = {};
    const at = await serve((asked, answer) => {
      seen = asked.headers;
      answer.writeHead(200, { "content-type": "image/png; charset=x" }).end(Buffer.from([1, 2, 3]));
    });
    expect(await files.get(`${at}/a.png?sig=1`)).toEqual({
      bytes: Buffer.from([1, 2, 3]),
      contentType: "image/png",
    });
    expect(Object.keys(seen).sort()).toEqual(["accept", "accept-encoding", "connection", "host"]);
  });

  it("is fetched through up to three redirects", async () => {
    let hops = 0;
    const at = await serve((asked, answer) => {
      const left = Number(asked.url!.slice(1));
      hops++;
      if (left === 0) answer.end("x");
      else answer.writeHead(302, { location: `/${left - 1}` }).end();
    });
    expect((await files.get(`${at}/3`)).bytes.toString()).toBe("x");
    hops = 0;
    expect(await faultFrom(files.get(`${at}/4`))).toMatchObject({ code: "download_failed" });
    expect(hops).toBe(4);
  });

  it("after a redirect to an internal address is never connected to", async () => {
    let inside = 0;
    const secret = await serve((_, answer) => {
      inside++;
      answer.end("secret");
    }, "127.0.0.2");
    for (const to of [
      secret,
      "http://169.254.169.254/latest/meta-data",
      `http://[::ffff:127.0.0.2]:${new URL(secret).port}/`,
      "http://[64:ff9b::7f00:2]/",
      "file:///etc/passwd",
      "data:text/plain,hello",
      "http://me:you@127.0.0.1/",
    ]) {
      const at = await serve((_, answer) => answer.writeHead(302, { location: to }).end());
      expect(await faultFrom(files.get(at))).toMatchObject({
        kind: "upstream",
        code: expect.stringMatching(/^address_/),
      });
    }
    expect(inside).toBe(0);
  });

  it("at an origin in the config may be internal, and no other address is allowed for it", async () => {
    const strict = createDownloader();
    const inside = { count: 0 };
    const secret = await serve((_, answer) => {
      inside.count++;
      answer.end("secret");
    });
    const own = await serve((asked, answer) =>
      asked.url === "/picture"
        ? answer.end("picture")
        : answer.writeHead(302, { location: decodeURIComponent(asked.url!.slice(1)) }).end(),
    );
    const port = new URL(own).port;
    expect(
      (await strict.get(`${own}/picture`, undefined, { trustedOrigin: own })).bytes.toString(),
    ).toBe("picture");
    expect(
      (await strict.get(`${own}/%2Fpicture`, undefined, { trustedOrigin: own })).bytes,
    ).toHaveLength(7);
    for (const to of [
      secret,
      `${own}/${encodeURIComponent(secret)}`,
      `http://localhost:${port}/picture`,
      `http://[::ffff:127.0.0.1]:${port}/picture`,
      `https://127.0.0.1:${port}/picture`,
      `http://me:you@127.0.0.1:${port}/picture`,
      "http://169.254.169.254/latest/meta-data",
    ])
      expect(await faultFrom(strict.get(to, undefined, { trustedOrigin: own })), to).toMatchObject({
        code: expect.stringMatching(/^address_/),
      });
    expect(await faultFrom(strict.get(`${own}/picture`))).toMatchObject({
      code: "address_not_public",
    });
    expect(inside.count).toBe(0);
    await strict[Symbol.asyncDispose]();
  });

  it("is aborted at its size limit, with or without a declared length", async () => {
    const announced = await serve((_, answer) => answer.end(Buffer.alloc(2_000)));
    const endless = await serve((_, answer) => {
      answer.flushHeaders();
      const more = (): void => {
        while (!answer.destroyed && answer.write(Buffer.alloc(500)));
        answer.once("drain", more);
      };
      more();
    });
    for (const at of [announced, endless])
      expect(await faultFrom(files.get(at, undefined, { maxBytes: 1_000 }))).toMatchObject({
        code: "download_too_large",
      });
    expect((await files.get(announced, undefined, { maxBytes: 2_000 })).bytes.length).toBe(2_000);
  });

  it("has a timeout, and ends when its client disconnects", async () => {
    const never = await serve((_, answer) => answer.flushHeaders());
    expect(await faultFrom(files.get(never, undefined, { deadlineMs: 60 }))).toMatchObject({
      kind: "timeout",
    });
    const gone = new AbortController();
    setTimeout(() => gone.abort(), 30);
    expect(await faultFrom(files.get(never, gone.signal))).toMatchObject({ kind: "canceled" });
  });

  it("with any other response is a fault", async () => {
    const at = await serve((_, answer) => answer.writeHead(404).end("no"));
    expect(await faultFrom(files.get(at))).toMatchObject({
      kind: "upstream",
      message: expect.stringContaining("404"),
    });
  });
});
