// The content of a video, which a backend may redirect to a storage.
import { expect, it } from "vitest";
import { getFault, type BatchClient } from "tollgate/plugin";
import { fetchContent, openAiVideos } from "tollgate/protocols/videos";

/** Returns a client whose backend redirects a number of times. */
function createClient(redirects: number): { client: BatchClient; urls: string[] } {
  const urls: string[] = [];
  const client: BatchClient = {
    credential: "default",
    signal: new AbortController().signal,
    async fetch(to) {
      urls.push(String(to));
      return urls.length > redirects
        ? new Response("frames", { headers: { "content-type": "video/mp4" } })
        : new Response(null, {
            status: 302,
            headers: { location: `https://storage.test/${urls.length}` },
          });
    },
  };
  return { client, urls };
}

it("follows two redirects to the content", async () => {
  const { client, urls } = createClient(2);
  const { body } = await openAiVideos().readContent("video_1", "video", client);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  expect(Buffer.concat(pieces).toString()).toBe("frames");
  expect(urls).toEqual([
    "videos/video_1/content",
    "https://storage.test/1",
    "https://storage.test/2",
  ]);
});

it("rejects a third redirect, and does not report empty content", async () => {
  const { client, urls } = createClient(3);
  const error: unknown = await openAiVideos()
    .readContent("video_1", "video", client)
    .catch((reason: unknown) => reason);
  expect(getFault(error)).toMatchObject({ kind: "upstream", code: "too_many_redirects" });
  expect(urls).toHaveLength(3);
  await expect(fetchContent(createClient(3).client, "files/1")).rejects.toThrow(/too often/);
});
