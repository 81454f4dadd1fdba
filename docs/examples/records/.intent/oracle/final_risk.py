"""Every case of the shipped decision, one `floor/model result` row each, by calling the function itself."""

from graft.risk import Risk, highest

for floor in Risk:
    for said in (None, *Risk):
        print(f"{floor}/{said or 'silent'} {highest(floor, said)}")
