// Frontends of models that do one kind of work: continue a text, measure it, rank, judge, draw, speak, listen.
import { type Frontend, type Heard, linesOf } from "./playground-frontend.ts";

export const completions: Frontend = {
  said: "Completions",
  kind: "completion",
  usual: "demo/complete",
  path: () => "/v1/completions",
  prompt: "Text to go on from",
  fields: ["stream"],
  body: ({ model, prompt, stream }) => ({
    model,
    prompt,
    max_tokens: 200,
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }),
  hear(heard, event) {
    heard.text += event.choices?.[0]?.text ?? "";
  },
  code: { library: "openai", method: "completions.create" },
};

export const embeddings: Frontend = {
  said: "Embeddings",
  kind: "embedding",
  usual: "demo/embed",
  path: () => "/v1/embeddings",
  prompt: "Texts, one a line",
  fields: [],
  body: ({ model, prompt }) => ({ model, input: linesOf(prompt) }),
  hear(heard, event) {
    if (Array.isArray(event.data)) heard.vectors = event.data.map((each: any) => each.embedding);
  },
  code: { library: "openai", method: "embeddings.create" },
};

export const rerank: Frontend = {
  said: "Rerank",
  kind: "rerank",
  usual: "demo/rerank",
  path: () => "/v2/rerank",
  prompt: "Question",
  fields: ["documents"],
  body: ({ model, prompt, documents }) => ({
    model,
    query: prompt,
    documents: linesOf(documents),
  }),
  hear(heard, event) {
    if (Array.isArray(event.results))
      heard.ranked = event.results.map(({ index, relevance_score: score }: any) => ({
        index,
        score,
      }));
  },
  code: { library: "cohere", method: "rerank" },
};

export const moderations: Frontend = {
  said: "Moderations",
  kind: "moderation",
  usual: "demo/moderate",
  path: () => "/v1/moderations",
  prompt: "Text to judge",
  fields: [],
  body: ({ model, prompt }) => ({ model, input: prompt }),
  hear(heard, event) {
    const { categories = {}, category_scores: scores = {} } = event.results?.[0] ?? {};
    heard.judged = Object.keys(categories)
      .map((name) => ({ name, score: scores[name] ?? 0, flagged: categories[name] === true }))
      .toSorted((a, b) => b.score - a.score);
  },
  code: { library: "openai", method: "moderations.create" },
};

const drawn = (heard: Heard, event: any): void => {
  if (/^image_(generation|edit)\.(partial_image|completed)$/.test(event.type ?? ""))
    heard.pictures = [event.b64_json];
  if (Array.isArray(event.data))
    heard.pictures = event.data.map((each: any) => each.b64_json ?? each.url).filter(Boolean);
};
const DRAWS = { kind: "image", usual: "demo/image", hear: drawn } as const;

export const images: Frontend = {
  ...DRAWS,
  said: "Images",
  path: () => "/v1/images/generations",
  prompt: "Picture of",
  fields: ["stream"],
  body: ({ model, prompt, stream }) => ({ model, prompt, ...(stream && { stream }) }),
  code: { library: "openai", method: "images.generate" },
};

export const edits: Frontend = {
  ...DRAWS,
  said: "Image edits",
  path: () => "/v1/images/edits",
  prompt: "What to change",
  fields: ["stream", "picture"],
  needs: "picture",
  body: ({ model, prompt, stream, picture }) => ({
    model,
    prompt,
    image: picture?.file,
    ...(stream && { stream }),
  }),
  code: { library: "openai", method: "images.edit" },
};

export const speech: Frontend = {
  said: "Speech",
  kind: "speech",
  usual: "demo/speech",
  path: () => "/v1/audio/speech",
  prompt: "Words to say",
  fields: ["voice"],
  body: ({ model, prompt, voice, format }) => ({
    model,
    input: prompt,
    voice,
    response_format: format,
  }),
  // The whole answer is the sound.
  hear() {},
  code: {
    library: "openai",
    method: "audio.speech.create",
    saves: ({ format }) => `speech.${format}`,
  },
};

const LISTENS = {
  kind: "transcript",
  usual: "demo/transcribe",
  needs: "sound",
  hear(heard: Heard, event: any): void {
    const { type, delta, text } = event;
    if (type === "transcript.text.delta") heard.text += delta;
    else if (type === undefined || type === "transcript.text.done") heard.text = text ?? heard.text;
  },
} as const;

export const transcriptions: Frontend = {
  ...LISTENS,
  said: "Transcriptions",
  path: () => "/v1/audio/transcriptions",
  fields: ["stream", "sound"],
  body: ({ model, sound, stream }) => ({ model, file: sound?.file, ...(stream && { stream }) }),
  code: { library: "openai", method: "audio.transcriptions.create" },
};

export const translations: Frontend = {
  ...LISTENS,
  said: "Translations into English",
  path: () => "/v1/audio/translations",
  fields: ["sound"],
  body: ({ model, sound }) => ({ model, file: sound?.file }),
  code: { library: "openai", method: "audio.translations.create" },
};
