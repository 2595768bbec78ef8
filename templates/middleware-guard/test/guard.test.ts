// What it lets pass and what it does not: on both lanes, and wherever an answer is cut.
import { hooks } from "tollgate/testing/vitest";
import plugin from "../src/index.ts";

hooks(plugin, {
  with: { words: ["tulip"] },
  passes: ["Tell me of roses.", { turns: ["Hello", "Hello to you", "And now?"] }],
  refuses: [
    { request: "Tell me of tulips.", code: "word_not_allowed" },
    { request: { turns: ["A TULIP", "Yes?", "Go on"] }, code: "word_not_allowed" },
  ],
  streams: [
    { says: "Roses are red.", comes: "Roses are red." },
    { says: "Here is a tulip for you.", leaks: "tulip", stops: true },
  ],
});
