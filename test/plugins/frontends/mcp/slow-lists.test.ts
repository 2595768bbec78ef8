// Servers whose lists hang: clients wait for a limited time, and get the lists of the other servers.
import { expect, it } from "vitest";
import { until } from "../../../kit/wait.ts";
import { openSession, sendModern } from "./client.ts";
import { all, namesOf, some, start } from "./gateway.ts";

const UNAVAILABLE = "tollgate/unavailable_servers";

it.each(["2026-07-28", "2025-11-25"] as const)(
  "a list in %s that hangs does not hold the lists of others",
  async (revision) => {
    const { url, servers } = await start(
      { one: { revision }, two: { revision, tools: ["echo", "secret"] } },
      { options: { list_timeout_s: 1 }, keys: ', tools: ["one/*", "*/other"]' },
    );
    const two = servers["two"]!;
    two.hangs = true;
    const listed = () => two.received.filter(({ method }) => method === "tools/list").length;
    const client = { url, key: all };
    const inTime = await sendModern(client, "tools/list");
    expect(namesOf(inTime)).toEqual(["one__echo"]);
    expect(inTime.result).toMatchObject({
      ttlMs: 0,
      _meta: { [UNAVAILABLE]: { count: 1, names: ["two"] } },
    });
    // The list is still being read, so later clients cause no request.
    const session = await openSession(client);
    const { result } = await session.send("tools/list");
    expect(result!["_meta"]).toEqual({ [UNAVAILABLE]: { count: 1, names: ["two"] } });
    const failed = { code: -32_603, message: "The server did not respond within 1 s." };
    expect((await sendModern({ ...client, url: `${url}/two` }, "tools/list")).error).toEqual(
      failed,
    );
    const call = await sendModern(client, "tools/call", { name: "two__echo", arguments: {} });
    expect(call.error).toEqual(failed);
    expect(listed()).toBe(1);
    expect(two.received.map(({ method }) => method)).not.toContain("tools/call");
    // A key that may have no tool of the server does not receive its name.
    const restricted = await sendModern({ url, key: some }, "tools/list");
    expect(restricted.result!["_meta"][UNAVAILABLE]).toEqual({ count: 1, names: [] });
    expect(restricted.text).not.toContain("two");
    two.hangs = false;
    const complete = ["one__echo", "two__echo", "two__secret"];
    await until(async () => namesOf(await sendModern(client, "tools/list")).length === 3);
    const now = await sendModern(client, "tools/list");
    expect(namesOf(now)).toEqual(complete);
    expect(now.result!["_meta"]).not.toHaveProperty([UNAVAILABLE]);
  },
);
