from kernels import KERNELS

from runner import Request, handler


def serve(kernel):
    def run(req: Request):
        return {"result": kernel()}

    return run


for name, kernel in KERNELS.items():
    handler(name)(serve(kernel))
