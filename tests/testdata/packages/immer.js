import { produce } from "immer";

export const run = () => produce({ list: [1], same: {} }, (draft) => { draft.list.push(2); });
