import * as yup from "yup";

export const run = async () => yup.object({ n: yup.number().min(3), e: yup.string().email() }).validate({ n: 1, e: "x" }, { abortEarly: false }).catch((e) => e.errors);
