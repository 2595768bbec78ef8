// Lists of videos in both orders, with more records than a page of the store has.
import { beforeAll, expect, it } from "vitest";
import { createFileSecrets } from "../../../plugins/frontends/jobs/file-secrets.ts";
import { VIDEO_KIND, VideoRecords } from "../../../plugins/frontends/videos/video-record.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";

const COUNT = 10_500;
const alice = { name: "key:alice", key: "alice", account: undefined };
const jobs = createMemoryJobs();
const records = new VideoRecords(() => jobs);
/** IDs, from the oldest to the newest. */
const ids: string[] = [];

beforeAll(async () => {
  const secrets = createFileSecrets(Buffer.alloc(32, 1));
  for (let n = 0; n < COUNT; n++) {
    const createdAt = 1_780_000_000_000 + n;
    const id = secrets.createId("video", alice.name, createdAt);
    ids.push(id);
    await jobs.put({
      id,
      kind: VIDEO_KIND,
      key: "alice",
      version: 1,
      createdAt,
      // Clients do not see a video whose creation has not ended.
      state: n === 7 ? "submitting" : "completed",
      data: "{}",
    });
  }
});

const list = async (isAscending: boolean, after?: number) => {
  const { items, hasMore } = await records.list(alice, {
    limit: 3,
    isAscending,
    after: after === undefined ? undefined : ids[after],
  });
  return { numbers: items.map(({ record }) => ids.indexOf(record.id)), hasMore };
};

it.each([
  [false, undefined, [COUNT - 1, COUNT - 2, COUNT - 3], true],
  [false, COUNT - 2, [COUNT - 3, COUNT - 4, COUNT - 5], true],
  [false, 9, [8, 6, 5], true],
  [false, 2, [1, 0], false],
  [true, undefined, [0, 1, 2], true],
  [true, 5, [6, 8, 9], true],
  [true, COUNT - 3, [COUNT - 2, COUNT - 1], false],
])("ascending: %s, after %s", async (isAscending, after, numbers, hasMore) => {
  expect(await list(isAscending, after)).toEqual({ numbers, hasMore });
});

it("a page follows a video that was deleted", async () => {
  await jobs.delete(ids[100]!, 1);
  expect((await list(false, 100)).numbers).toEqual([99, 98, 97]);
  expect((await list(true, 100)).numbers).toEqual([101, 102, 103]);
});
