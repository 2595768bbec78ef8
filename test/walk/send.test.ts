// One request to an upstream: what its taker asks for while bytes are on their way.
import { Pool } from "undici";
import { expect, it } from "vitest";
import { UpstreamResponse } from "../../src/walk/upstream/response.ts";
import { Watchdog } from "../../src/walk/bounds/watchdog.ts";
import { quiet } from "../kit/waits.ts";
import { backend, TIMEOUTS } from "../kit/scene.ts";

it("whoever takes it and cannot hold what has come already gets no more", async () => {
  await using up = await backend((_req, res) => {
    const piece = Buffer.alloc(32_768);
    let sent = 0;
    const flood = () => {
      while (!res.destroyed && sent++ < 1_000) if (!res.write(piece)) return;
    };
    res.on("drain", flood);
    flood();
  });
  using dog = new Watchdog();
  const pool = new Pool(up.base);
  const flight = new UpstreamResponse(dog, TIMEOUTS);
  await flight.go({ stage: "unsent", fresh: false }, { pool } as never, {
    method: "GET",
    path: "/",
    headers: [],
    body: null,
  });
  await quiet(50);
  let pieces = 0;
  flight.take({
    data() {
      pieces++;
      flight.pause();
    },
    end() {},
  });
  await quiet(200);
  expect(pieces).toBe(1);
  flight.abort(new Error("enough"));
  await pool.destroy();
});
